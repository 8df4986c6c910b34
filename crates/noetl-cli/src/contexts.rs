//! Reads and writes the context file, which maps names to servers and names the current context.
//!
//! Other programs share the file, `~/.noetl/config.yaml`. Writing preserves all keys, including
//! unknown ones.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::error::{CliError, ErrorKind};
use crate::output::yaml;
use crate::settings;

/// Key of the server URL in a context.
const SERVER: &str = "server_url";
/// Keys of the token, in order of precedence. The second one is written by another program.
const TOKENS: [&str; 2] = ["token", "gateway_session_token"];

/// A named server with its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) name: String,
    pub(crate) server_url: Option<String>,
    pub(crate) token: Option<String>,
    pub(crate) runtime: Option<String>,
}

/// Content of the context file.
#[derive(Debug, Clone)]
pub(crate) struct Contexts {
    file: PathBuf,
    root: Map<String, Value>,
}

/// Exclusive access to the context file, until dropped.
pub(crate) struct ContextsLock {
    pub(crate) contexts: Contexts,
    _lock: File,
}

/// Returns the path of the context file.
pub(crate) fn file() -> Result<PathBuf, CliError> {
    let home = settings::variable("HOME").ok_or_else(|| {
        CliError::new(ErrorKind::Config, "HOME is not set, so there is no file of contexts")
            .hint("set HOME, or name the server with --server-url")
    })?;
    Ok(Path::new(&home).join(".noetl").join("config.yaml"))
}

impl Contexts {
    /// Reads the context file. A missing file is empty.
    pub(crate) fn read(file: PathBuf) -> Result<Self, CliError> {
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                return Err(CliError::from_error(ErrorKind::Config, &error)
                    .about(&format!("could not read {}", file.display())));
            }
        };
        let root = if text.trim().is_empty() { Map::new() } else { parse(&file, &text)? };
        Ok(Self { file, root })
    }

    /// Returns the name of the current context.
    pub(crate) fn current(&self) -> Option<&str> {
        self.root.get("current_context").and_then(Value::as_str).filter(|name| !name.is_empty())
    }

    /// Returns all contexts, in the order of the file.
    pub(crate) fn all(&self) -> Vec<Context> {
        let names = self.contexts().into_iter().flat_map(Map::keys);
        names.filter_map(|name| self.get(name)).collect()
    }

    /// Returns the context with this name, if it exists.
    pub(crate) fn get(&self, name: &str) -> Option<Context> {
        let fields = self.contexts()?.get(name)?;
        let text = |key: &str| {
            let value = fields.get(key).and_then(Value::as_str);
            value.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        Some(Context {
            name: name.to_owned(),
            server_url: text(SERVER),
            token: TOKENS.into_iter().find_map(text),
            runtime: text("runtime"),
        })
    }

    /// Returns the context with this name, or a failure that lists the existing ones.
    pub(crate) fn named(&self, name: &str) -> Result<Context, CliError> {
        self.get(name).ok_or_else(|| self.unknown(name))
    }

    pub(crate) fn unknown(&self, name: &str) -> CliError {
        let names: Vec<String> = self.all().into_iter().map(|context| context.name).collect();
        let hint = match names.is_empty() {
            true => format!("add it with `noetl context add {name} --server-url URL`"),
            false => format!("there is {}", names.join(", ")),
        };
        let message = format!("there is no context '{name}' in {}", self.file.display());
        CliError::new(ErrorKind::User, message).hint(hint)
    }

    fn contexts(&self) -> Option<&Map<String, Value>> {
        self.root.get("contexts").and_then(Value::as_object)
    }
}

impl ContextsLock {
    /// Locks the file against other writers and reads it. Waits for the lock.
    pub(crate) fn begin(file: PathBuf) -> Result<Self, CliError> {
        // Resolve a symbolic link, so that its target is changed and the link is not replaced.
        let file = fs::canonicalize(&file).unwrap_or(file);
        let lock = lock(&file).map_err(|error| not_written(&file, &error))?;
        Ok(Self { contexts: Contexts::read(file)?, _lock: lock })
    }

    /// Sets fields of a context, creating the context if it doesn't exist.
    pub(crate) fn set(&mut self, name: &str, fields: &[(&str, String)]) {
        let contexts = self.contexts.root.entry("contexts").or_insert(Value::Null);
        let contexts = object(contexts);
        let context = object(contexts.entry(name).or_insert(Value::Null));
        for (key, value) in fields {
            context.insert((*key).to_owned(), Value::from(value.as_str()));
        }
    }

    /// Makes a context the current one.
    pub(crate) fn set_current(&mut self, name: &str) {
        self.contexts.root.insert("current_context".to_owned(), Value::from(name));
    }

    /// Removes a context. Returns `true` if it existed.
    pub(crate) fn remove(&mut self, name: &str) -> bool {
        let contexts = self.contexts.root.get_mut("contexts").and_then(Value::as_object_mut);
        let removed = contexts.is_some_and(|contexts| contexts.shift_remove(name).is_some());
        if self.contexts.current() == Some(name) {
            self.contexts.root.shift_remove("current_context");
        }
        removed
    }

    /// Replaces the file atomically, readable only by its owner.
    pub(crate) fn write(self) -> Result<(), CliError> {
        let Contexts { file, root } = self.contexts;
        let text = yaml::document(&Value::Object(root));
        replace(&file, text.as_bytes()).map_err(|error| not_written(&file, &error))
    }
}

fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("made an object just above")
}

/// Parses the content of the file. An error omits the line, which may contain a token.
fn parse(file: &Path, text: &str) -> Result<Map<String, Value>, CliError> {
    let name = file.display();
    let hint = "it holds `current_context: NAME` and `contexts: {NAME: {server_url: URL}}`";
    let wrong = |message: String| CliError::new(ErrorKind::Config, message).hint(hint);
    let data = noetl_playbook::read_data(text).map_err(|diagnostics| {
        let first = diagnostics.first();
        let place = first.map_or_else(String::new, |it| format!(":{}:{}", it.line, it.column));
        let why = first.map_or("it is empty", |it| it.message.as_str());
        wrong(format!("{name}{place}: not readable as YAML: {why}"))
    })?;
    let Value::Object(root) = data else {
        return Err(wrong(format!("{name} is not a map")));
    };
    let contexts = root.get("contexts").filter(|contexts| !contexts.is_null());
    match contexts.map(Value::as_object) {
        Some(None) => Err(wrong(format!("{name}: contexts is not a map"))),
        Some(Some(contexts)) => match contexts.iter().find(|(_, fields)| !fields.is_object()) {
            Some((context, _)) => Err(wrong(format!("{name}: context '{context}' is not a map"))),
            None => Ok(root),
        },
        None => Ok(root),
    }
}

fn lock(file: &Path) -> io::Result<File> {
    let directory = file.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let path = file.with_extension("lock");
    let lock =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    lock.lock()?;
    Ok(lock)
}

fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = file.with_extension(format!("{}.draft", std::process::id()));
    // A draft left by an earlier process with the same ID is stale.
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    let result = written.write_all(bytes).and_then(|()| written.sync_all());
    let result = result.and_then(|()| fs::rename(&draft, file));
    if result.is_err() {
        let _ = fs::remove_file(&draft);
    }
    result
}

fn not_written(file: &Path, error: &io::Error) -> CliError {
    CliError::from_error(ErrorKind::Config, error)
        .about(&format!("could not write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn home() -> (tempfile::TempDir, PathBuf) {
        let home = tempfile::TempDir::new().expect("a directory");
        let file = home.path().join(".noetl").join("config.yaml");
        (home, file)
    }

    fn fields(url: &str) -> Vec<(&'static str, String)> {
        vec![(SERVER, url.to_owned())]
    }

    #[test]
    fn other_contexts_in_the_file_are_unchanged() {
        let (_home, file) = home();
        fs::create_dir_all(file.parent().expect("a parent")).expect("a directory");
        let text = "current_context: a\ntheirs: {deep: [1, 'no']}\ncontexts:\n  a:\n    \
                    server_url: http://a\n    kube_context: kind\n    gateway_session_token: s\n";
        fs::write(&file, text).expect("a file");
        let mut changing = ContextsLock::begin(file.clone()).expect("a file");
        changing.set("a", &fields("http://b"));
        changing.set("c", &fields("http://c"));
        changing.write().expect("written");
        let read = noetl_playbook::read_data(&fs::read_to_string(&file).expect("a file"));
        let expected = serde_json::json!({
            "current_context": "a",
            "theirs": {"deep": [1, "no"]},
            "contexts": {
                "a": {
                    "server_url": "http://b",
                    "kube_context": "kind",
                    "gateway_session_token": "s",
                },
                "c": {"server_url": "http://c"},
            },
        });
        assert_eq!(read.ok(), Some(expected));
        let contexts = Contexts::read(file).expect("a file");
        let token = contexts.named("a").expect("a context").token;
        assert_eq!((contexts.current(), token.as_deref()), (Some("a"), Some("s")));
    }

    #[test]
    fn the_file_is_private_and_no_temporary_file_remains() {
        let (_home, file) = home();
        let mut changing = ContextsLock::begin(file.clone()).expect("no file yet");
        changing.set("a", &fields("http://a"));
        changing.set_current("a");
        changing.write().expect("written");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        let directory = file.parent().expect("a parent");
        assert_eq!((mode(&file), mode(directory)), (0o600, 0o700));
        let mut names: Vec<_> = fs::read_dir(directory)
            .expect("a list")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
            .collect();
        names.sort();
        assert_eq!(names, ["config.lock", "config.yaml"]);
        let mut changing = ContextsLock::begin(file.clone()).expect("a file");
        assert!(changing.remove("a") && !changing.remove("a"));
        changing.write().expect("written");
        assert_eq!(Contexts::read(file).expect("a file").current(), None);
    }

    #[test]
    fn concurrent_writers_lose_no_context() {
        let (_home, file) = home();
        let writers: Vec<_> = (0..8)
            .map(|number| {
                let file = file.clone();
                std::thread::spawn(move || {
                    let mut changing = ContextsLock::begin(file).expect("a file");
                    changing.set(&format!("c{number}"), &fields("http://a"));
                    changing.write().expect("written");
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
        assert_eq!(Contexts::read(file).expect("a file").all().len(), 8);
    }

    #[test]
    fn an_invalid_file_is_reported_without_its_contents() {
        let (_home, file) = home();
        fs::create_dir_all(file.parent().expect("a parent")).expect("a directory");
        for (text, expected) in [
            ("contexts: {a: [", "config.yaml:"),
            ("- a", "is not a map"),
            ("contexts: [sesame]", "contexts is not a map"),
            ("contexts: {a: sesame}", "context 'a' is not a map"),
        ] {
            fs::write(&file, text).expect("a file");
            let message = Contexts::read(file.clone()).expect_err(text).text();
            assert!(message.contains(expected) && !message.contains("sesame"), "{text}: {message}");
        }
    }
}
