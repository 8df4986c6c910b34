//! Playbooks that show something: their heads say how to run them and what they print.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

use noetl_test_services::nats::TestNats;
use noetl_test_services::postgres::TestDatabase;
use serde_json::{Map, Value};

use crate::noetl::{EXAMPLES, Home};

/// A key for credentials: 32 zeros.
pub(crate) const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

/// Number of playbooks that run concurrently.
const AT_A_TIME: usize = 4;

/// A playbook and the command and result documented in its head.
pub(crate) struct ShownPlaybook {
    /// The file's name without its ending.
    pub(crate) name: String,
    pub(crate) text: String,
    path: PathBuf,
    /// Arguments after the file in the first command of the head.
    arguments: Vec<String>,
    prints: Value,
}

/// The playbooks of a directory that `wanted` picks by name.
pub(crate) fn all(directory: &str, wanted: impl Fn(&str) -> bool) -> Vec<ShownPlaybook> {
    let mut files = files(directory);
    files.retain(|path| wanted(path.file_stem().unwrap().to_str().unwrap()));
    files.into_iter().map(ShownPlaybook::read).collect()
}

/// `noetl check` finds nothing to say about any of them.
pub(crate) fn assert_valid(directory: &str) {
    let files = files(directory);
    let home = Home::new();
    let output = home.end_of(home.command(["check"]).args(&files));
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), ""), "{}", output.stderr);
    let lines: Vec<&str> = output.stderr.lines().collect();
    assert_eq!(lines.len(), files.len(), "{}", output.stderr);
    assert!(lines.iter().all(|line| line.ends_with(".yaml: ok")), "{lines:?}");
}

fn files(directory: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect();
    files.sort();
    files
}

impl ShownPlaybook {
    fn read(path: PathBuf) -> Self {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        let head: Vec<&str> =
            text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim).collect();
        let command = head.iter().find_map(|line| line.strip_prefix("noetl run "));
        let command = command.unwrap_or_else(|| panic!("{name} does not say how to run it"));
        let (file, rest) = command.split_once(' ').unwrap_or((command, ""));
        assert!(file.starts_with("examples/") && path.ends_with(file), "{name} names {file}");
        let arguments = rest.split_whitespace().map(str::to_owned).collect();
        let head = head.join(" ");
        let (_, prints) = head.split_once("Prints: ").unwrap_or_default();
        let prints = serde_json::Deserializer::from_str(prints).into_iter::<Value>().next();
        let prints = prints.and_then(Result::ok);
        let prints = prints.unwrap_or_else(|| panic!("{name} does not say what it prints"));
        Self { name, text, path, arguments, prints }
    }

    /// Returns the difference from the documented result, or `None`.
    fn trouble(&self, home: &Home, store: [&str; 2], services: &Services) -> Option<String> {
        let mut command = home.command(["run"]);
        command.arg(&self.path).args(store).env("NOETL_ENCRYPTION_KEY", KEY);
        command
            .args(self.arguments.iter().map(|argument| services.with_service_addresses(argument)));
        let output = home.end_of(&mut command);
        let printed = serde_json::from_str(&output.stdout).unwrap_or(Value::Null);
        (output.code != Some(0) || printed != self.prints)
            .then(|| format!("{} does not print {}:\n{output:?}", self.name, self.prints))
    }
}

impl ShownPlaybook {
    /// Returns path, workload, and expected result for a run on the workers of a server.
    pub(crate) fn server_run(
        &self,
        services: &Services,
    ) -> Option<(String, Map<String, Value>, &Value)> {
        let mut workload = Map::new();
        for pair in self.arguments.chunks(2) {
            let [flag, argument] = pair else { return None };
            let argument = services.with_service_addresses(argument);
            let (name, value) = argument.split_once('=').filter(|_| flag == "--set")?;
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
            workload.insert(name.to_owned(), value);
        }
        Some((format!("examples/{}", self.name), workload, &self.prints))
    }
}

/// Services that the examples use.
pub(crate) struct Services {
    database: TestDatabase,
    nats: TestNats,
}

impl Services {
    pub(crate) fn start() -> Self {
        Self { database: TestDatabase::new(), nats: TestNats::start() }
    }

    /// An argument with the address of a real service in place of that of an imagined one, and
    /// files found from anywhere.
    fn with_service_addresses(&self, argument: &str) -> String {
        if let Some(file) = argument.strip_prefix("examples/") {
            return format!("{EXAMPLES}/{file}");
        }
        match argument.split_once('=') {
            Some(("db", _)) => format!("db={}", self.database.url()),
            Some(("nats", _)) => format!("nats={}", self.nats.url()),
            _ => argument.to_owned(),
        }
    }
}

/// Runs all of them, each with its log in a file of its own.
pub(crate) fn run_on_sqlite(all: &[ShownPlaybook]) {
    let services = Services::start();
    let run = |shown: &ShownPlaybook| {
        let home = Home::new();
        let trouble = shown.trouble(&home, ["--db", "log.db"], &services);
        trouble.or_else(|| unsound(&home, "sqlite://log.db"))
    };
    run_all(all, run);
}

/// Runs all of them with their logs in one database, where they run each other's steps. A process
/// that ends releases its commands.
pub(crate) fn run_on_postgres(all: &[ShownPlaybook]) {
    let services = Services::start();
    let logs = TestDatabase::new();
    let url = logs.url();
    let home = Home::new();
    home.noetl(["db", "migrate", "--database-url", &url]);
    run_all(all, |shown| shown.trouble(&Home::new(), ["--database-url", &url], &services));
    assert_eq!(unsound(&home, &url), None);
}

/// Returns the inconsistencies of the logs, or `None`.
fn unsound(home: &Home, url: &str) -> Option<String> {
    let output = home.noetl(["db", "validate", "--database-url", url]);
    (output.code != Some(0)).then(|| format!("{output:?}"))
}

fn run_all(all: &[ShownPlaybook], run: impl Fn(&ShownPlaybook) -> Option<String> + Sync) {
    let left = Mutex::new(all.iter());
    let troubles = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let next = left.lock().unwrap().next();
                    let Some(shown) = next else { break };
                    let trouble = run(shown);
                    troubles.lock().unwrap().extend(trouble);
                }
            });
        }
    });
    let troubles = troubles.into_inner().unwrap();
    assert!(troubles.is_empty(), "{}", troubles.join("\n\n"));
}
