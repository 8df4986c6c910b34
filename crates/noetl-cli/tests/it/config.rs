//! Settings from files, variables, and flags.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use insta::assert_snapshot;
use noetl_config::{Kind, Options, Setting};
use rustix::process::Signal;
use serde_json::Value;

use crate::noetl::{CommandOutput, Home, Running};

/// Names that the program has always read.
const VARIABLES: &str = include_str!("../../../noetl-config/variables.txt");

/// The program with these arguments, which reads files like one that a user starts.
fn command(home: &Home, arguments: &[&str]) -> Command {
    let mut command = home.command(arguments);
    command.env_remove("NOETL_CONFIG").env_remove("NOETL_AUTH").env("HOME", home.path());
    command
}

fn run_in(home: &Home, arguments: &[&str]) -> CommandOutput {
    home.end_of(&mut command(home, arguments))
}

fn sample(setting: &Setting) -> String {
    match setting.kind {
        Kind::Text if setting.key == "traces.sampler_arg" => "0.5".to_owned(),
        Kind::Text if setting.is_secret() => "postgres://ada:hunter2@host/x".to_owned(),
        Kind::Text => "some text".to_owned(),
        Kind::Number { max, .. } | Kind::Seconds { max, .. } | Kind::Millis { max, .. } => {
            max.to_string()
        }
        Kind::Switch | Kind::OtelSwitch => "true".to_owned(),
        Kind::Choice(words) => words[1].to_owned(),
        Kind::List => "a,b".to_owned(),
        Kind::Path => "/some/path".to_owned(),
        Kind::Ip => "127.0.0.2".to_owned(),
        Kind::Socket => "127.0.0.1:9".to_owned(),
    }
}

/// The settings that `noetl config show` prints, by variable.
fn shown(command: &mut Command, home: &Home) -> BTreeMap<String, Value> {
    let output = home.end_of(command);
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    assert!(!output.stdout.contains("hunter2"), "{}", output.stdout);
    let shown = output.json();
    let shown = shown.as_array().unwrap().iter();
    let named = shown.filter_map(|it| Some((it["variable"].as_str()?.to_owned(), it.clone())));
    named.collect()
}

#[test]
fn every_variable_reaches_the_program() {
    let home = Home::new();
    let mut seen = BTreeMap::new();
    // The second variable of a setting counts only without the first.
    for place in 0..2 {
        let mut show = command(&home, &["config", "show", "--output", "json"]);
        for setting in Options::settings() {
            let variable = setting.variables.get(place);
            show.envs(variable.map(|name| (name, sample(setting))));
            show.envs((place > 0).then_some(("POSTGRES_HOST", "db")));
        }
        seen.extend(shown(&mut show, &home));
    }
    for name in VARIABLES.lines() {
        let setting = Options::settings().find(|it| it.variables.contains(&name)).unwrap();
        let value = seen[name]["value"].as_str().unwrap();
        if !setting.is_secret() && name != "POSTGRES_HOST" {
            assert_eq!(value, sample(setting), "{name}");
        }
        assert_eq!(seen[name]["layer"], "environment");
    }
}

#[test]
fn flags_override_variables_which_override_files() {
    let home = Home::new();
    fs::create_dir_all(home.path().join(".config/noetl")).unwrap();
    let slots = |arguments: &[&str], variable: Option<&str>| {
        let mut dev = command(&home, &["dev", "--port", "0", "--data", "data"]);
        dev.args(arguments).envs(variable.map(|slots| ("NOETL_SLOTS", slots)));
        dev.stderr(Stdio::piped()).stdout(Stdio::null());
        let mut child = dev.spawn().unwrap();
        let greeting = BufReader::new(child.stderr.take().unwrap()).lines();
        let lines: Vec<String> =
            greeting.map(Result::unwrap).take_while(|line| !line.contains("  stop ")).collect();
        let running = Running::of(child);
        running.send(Signal::TERM);
        running.end(&home);
        let value = |name: &str| {
            let line = lines.iter().filter_map(|line| line.trim().strip_prefix(name)).next();
            line.map(|line| line.trim().replace(home.path().to_str().unwrap(), "~"))
        };
        (value("slots"), value("config"))
    };
    let is = |slots: &str, file: &str| {
        (Some(slots.to_owned()), Some(file.to_owned()).filter(|file| !file.is_empty()))
    };
    assert_eq!(slots(&[], None), is("16", ""));
    home.write(".config/noetl/noetl.toml", "[server]\nslots = 2\n");
    assert_eq!(slots(&[], None), is("2", "~/.config/noetl/noetl.toml"));
    home.write("noetl.toml", "[server]\nslots = 3\n");
    assert_eq!(slots(&[], None).0.as_deref(), Some("3"));
    assert_eq!(slots(&[], Some("4")).0.as_deref(), Some("4"));
    assert_eq!(slots(&["--slots", "5"], Some("4")).0.as_deref(), Some("5"));
    home.write("other.toml", "[server]\nslots = 6\n");
    assert_eq!(slots(&["--config", "other.toml"], None), is("6", "other.toml"));
    assert_eq!(slots(&["--config", "/dev/null"], None).0.as_deref(), Some("16"));
}

#[test]
fn the_origin_of_each_value_is_shown() {
    let home = Home::new();
    home.write("noetl.toml", "[server]\nport = 1\n\n[worker]\nlabels = ['a=1']\n");
    let mut show = command(&home, &["config", "show", "--origin"]);
    show.env("NOETL_WORKER_SLOTS", "4").env("NOETL_TOKEN", "hunter2");
    show.env("NOETL_DATABASE_URL", "postgres://ada:hunter2@db/noetl?password=hunter2");
    let output = home.end_of(&mut show);
    let set: Vec<&str> =
        output.stdout.lines().filter(|line| !line.ends_with("(default)")).collect();
    assert_snapshot!(set.join("\n"), @r"
    server.port = 1  (noetl.toml:2:8)
    database.url = postgres://********@db/noetl?********  (NOETL_DATABASE_URL)
    worker.slots = 4  (NOETL_WORKER_SLOTS)
    worker.labels = a=1  (noetl.toml:5:10)
    client.token = ********  (NOETL_TOKEN)
    ");
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    assert!(output.stdout.contains("server.host = 127.0.0.1  (default)\n"), "{}", output.stdout);
}

#[test]
fn all_problems_are_reported_with_their_position() {
    let home = Home::new();
    home.write(
        "noetl.toml",
        "[server]\nprot = 1\nhost = '0.0.0.0'\n[worker]\nslots = 'many'\n[wroker]\n",
    );
    let mut check = command(&home, &["config", "check"]);
    check.env("NOETL_PORT", "x").env("NOETL_QUOTAS", "y").env("NOETL_PROT", "1");
    assert_snapshot!(home.end_of(&mut check).transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    warning: unknown variable NOETL_PROT; did you mean NOETL_PORT?
    error: noetl.toml:2:1: unknown key 'prot' in [server]
      help: did you mean port?
    error: noetl.toml:3:1: server.host has no effect in a file of the working directory
      help: name the file with --config or NOETL_CONFIG if you trust it, or set the key in the file of your user or of this machine
    error: noetl.toml:5:9: worker.slots is a number from 1 to 10000, not the string 'many'
    error: noetl.toml:6:2: unknown section 'wroker'
      help: did you mean worker?
    error: NOETL_PORT is a number from 0 to 65535, not 'x'
    error: NOETL_QUOTAS: 'y' is none of executions=N, starts=N (a second), documents=N, bytes=N
      help: as in NOETL_QUOTAS='executions=1000 starts=50; acme: executions=10'
    6 problems (noetl.toml)
    ");
}

#[test]
fn a_file_can_be_checked_without_the_environment() {
    let home = Home::new();
    home.write("good.toml", "[server]\nhost = '0.0.0.0'\n[auth]\nmode = 'token'\n");
    let mut check = command(&home, &["config", "check", "good.toml"]);
    let output = home.end_of(check.env("NOETL_PORT", "x").env("NOETL_PROT", "1"));
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), "no problems (good.toml)\n"));
    home.write("bad.toml", "[secrets]\nencryption_key = 'hunter2'\n[egress]\nallow = ['a b']\n");
    let output = crate::config::run_in(&home, &["config", "check", "bad.toml", "--output", "json"]);
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(!output.stdout.contains("hunter2"), "{output:?}");
    let problems = output.json()["problems"].as_array().unwrap().len();
    assert_eq!(problems, 2, "{output:?}");
}

#[test]
fn an_invalid_file_fails_only_verbs_that_use_settings() {
    let home = Home::new();
    home.write("noetl.toml", "[server]\nprot = 1\n");
    home.write("test.yaml", crate::noetl::one_step("{kind: noop}"));
    for arguments in [
        &["run", "test.yaml"][..],
        &["dev"],
        &["status", "1"],
        &["db", "stats"],
        &["worker"],
        &["config", "show"],
    ] {
        let output = run_in(&home, arguments);
        assert_eq!(output.code, Some(3), "{output:?}");
        assert_eq!(
            output.stderr,
            "error: noetl.toml:2:1: unknown key 'prot' in [server]\n  help: did you mean port?\n"
        );
    }
    for arguments in [&["check", "test.yaml"][..], &["completions", "bash"], &["context", "list"]] {
        assert_eq!(run_in(&home, arguments).code, Some(0), "{arguments:?}");
    }
    let output =
        home.end_of(command(&home, &["run", "test.yaml"]).env("NOETL_CONFIG", "/dev/null"));
    assert_eq!(output.code, Some(0), "{output:?}");
}

#[test]
fn a_file_of_the_working_directory_cannot_redirect_a_token() {
    let home = Home::new();
    let file = "[client]\nserver_url = 'http://127.0.0.1:9'\n";
    home.write("noetl.toml", file);
    let mut status = command(&home, &["status", "1"]);
    let output = home.end_of(status.env("NOETL_TOKEN", "hunter2"));
    assert_eq!(output.code, Some(3));
    assert!(output.stderr.contains("client.server_url has no effect in a file of the working"));
    // The same file counts when its user names it.
    let output = crate::config::run_in(&home, &["--config", "noetl.toml", "status", "1"]);
    assert!(output.stderr.starts_with("error: http://127.0.0.1:9"), "{output:?}");
}

#[test]
fn unreadable_files_are_reported_by_name() {
    let home = Home::new();
    fs::create_dir(home.path().join("directory")).unwrap();
    home.write("bytes.toml", b"# \xff");
    home.write("huge.toml", vec![b'#'; 2 << 20]);
    home.write("empty.toml", "");
    for (file, expected) in [
        ("directory", "error: directory: this is a directory\n"),
        ("bytes.toml", "error: bytes.toml:1:3: the file is not valid UTF-8\n"),
        ("huge.toml", "error: huge.toml: could not read the file: the file is larger than 1 MiB\n"),
        ("absent.toml", "error: absent.toml: could not read the file: No such file"),
    ] {
        let output = run_in(&home, &["config", "show", "--config", file]);
        assert_eq!(output.code, Some(3), "{output:?}");
        assert!(output.stderr.starts_with(expected), "{output:?}");
    }
    assert_eq!(run_in(&home, &["config", "show", "--config", "empty.toml"]).code, Some(0));
    fs::create_dir(home.path().join("noetl.toml")).unwrap();
    let output = run_in(&home, &["config", "show"]);
    assert!(output.stderr.starts_with("error: noetl.toml: this is not a file\n"), "{output:?}");
    fs::remove_dir(home.path().join("noetl.toml")).unwrap();
    let path = home.write("noetl.toml", "");
    fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
    let output = crate::config::run_in(&home, &["config", "show"]);
    assert!(output.stderr.starts_with("error: noetl.toml: every user can write"), "{output:?}");
}

#[test]
fn only_clients_ignore_a_file_that_they_must_not_read() {
    use std::os::unix::process::CommandExt as _;
    let home = Home::new();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir_all(home.path().join("config/noetl")).unwrap();
    let file = home.write("config/noetl/noetl.toml", "[auth]\nmode = 'oidc'\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    let run_denied = |arguments: &[&str]| {
        let mut command = command(&home, arguments);
        command.env("XDG_CONFIG_HOME", home.path().join("config"));
        // Root reads every file.
        if rustix::process::geteuid().is_root() {
            command.uid(65_534).gid(65_534);
        }
        home.end_of(&mut command)
    };
    let problem = "config/noetl/noetl.toml: could not read the file: Permission denied";
    for arguments in [
        &["dev", "--port", "0", "--data", "data"][..],
        &["server", "--database-url", "sqlite::memory:"],
        &["worker"],
    ] {
        let output = run_denied(arguments);
        assert_eq!(output.code, Some(3), "{output:?}");
        assert!(output.stderr.starts_with("error: "), "{output:?}");
        assert!(output.stderr.contains(problem), "{output:?}");
    }
    for arguments in [&["config", "show"][..], &["config", "check"]] {
        let output = run_denied(arguments);
        assert_eq!(output.code, Some(0), "{output:?}");
        assert!(output.stderr.starts_with("warning: ignored "), "{output:?}");
        assert!(output.stderr.contains(problem), "{output:?}");
    }
    let output = run_denied(&["status", "1", "--server-url", "http://127.0.0.1:9"]);
    assert!(output.stderr.starts_with("warning: ignored "), "{output:?}");
    assert!(output.stderr.contains("error: http://127.0.0.1:9"), "{output:?}");
}

#[test]
fn settings_of_an_unused_database_are_ignored() {
    let home = Home::new();
    let wrong = [("POSTGRES_MAX_CONNECTIONS", "2"), ("OTEL_BSP_MAX_QUEUE_SIZE", "0")];
    let output = home.end_of(command(&home, &["db", "migrate"]).envs(wrong));
    assert_eq!(output.code, Some(0), "{output:?}");
    // The token of `noetl dev` is in the data directory, which is a setting of the database.
    let status = ["status", "1", "--server-url", "http://127.0.0.1:9"];
    let output = home.end_of(command(&home, &status).envs(wrong));
    assert!(output.stderr.starts_with("error: http://127.0.0.1:9"), "{output:?}");
    let output = home.end_of(command(&home, &status).envs(wrong).env("POSTGRES_HOST", "db"));
    assert_eq!(output.code, Some(3), "{output:?}");
    assert!(output.stderr.starts_with("error: POSTGRES_MAX_CONNECTIONS is a number"), "{output:?}");
}

#[test]
fn a_worker_does_not_lose_a_configuration_from_a_pipe() {
    let home = Home::new();
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"[client]\nserver_url = 'http://127.0.0.1:9'\n").unwrap();
    drop(writer);
    let mut worker = command(&home, &["worker", "--config", "/dev/stdin"]);
    // With a token in the environment, the worker starts over and reads its files again.
    let output = home.end_of(worker.env("NOETL_TOKEN", "hunter2").stdin(Stdio::from(reader)));
    assert_eq!(output.code, Some(3), "{output:?}");
    assert!(
        output.stderr.starts_with("error: /dev/stdin: this is not a regular file\n"),
        "{output:?}"
    );
}

#[test]
fn values_that_are_not_utf_8_are_rejected_unless_they_are_paths() {
    let home = Home::new();
    let bytes = OsStr::from_bytes(b"data\xff");
    let output = home.end_of(command(&home, &["config", "show"]).env("NOETL_QUOTAS", bytes));
    assert_eq!(output.code, Some(3));
    assert_eq!(output.stderr, "error: NOETL_QUOTAS is not valid UTF-8\n");
    let mut stats = command(&home, &["db", "migrate"]);
    let output = home.end_of(stats.env("NOETL_DATA", bytes));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(home.path().join(bytes).join("noetl.db").exists());
}

#[test]
fn unknown_variables_cause_warnings() {
    let home = Home::with(&crate::noetl::one_step("{kind: noop}"));
    let output = home.end_of(command(&home, &["run", "test.yaml"]).env("NOETL_PROT", "1"));
    assert_eq!(output.code, Some(0), "{output:?}");
    let warning = "warning: unknown variable NOETL_PROT; did you mean NOETL_PORT?\n";
    assert!(output.stderr.starts_with(warning), "{output:?}");
}

#[test]
fn steps_cannot_read_the_configuration_files() {
    let file = "{kind: sqlite, db_path: noetl.toml, query: 'select 1'}";
    let home = Home::with(&crate::noetl::one_step(file));
    home.write("noetl.toml", "[server]\nport = 1\n");
    let output = run_in(&home, &["run", "test.yaml"]);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("noetl.toml"), "{output:?}");
}
