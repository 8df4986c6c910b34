//! Hostile steps at each isolation level, with real processes and files.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use noetl_model::{Failure, FailureKind, Tenant, Value};
use noetl_test_services::{isolation_level, missing, unsupported};
use noetl_tools::{
    AllowedDirectory, Isolation, Level, Options, OwnFiles, ToolCall, ToolRegistry, User,
};
use serde_json::json;

use crate::harness::{CapturedLog, HOST_VARIABLE, assert_gone, call, detail, host, isolated};

/// The part that every skip names that needs root.
const ANOTHER_USER: &str = "another user for steps";

const PYTHON: &str = "/usr/bin/python3";

/// Content of the program's own file, which no step may read.
const SECRET: &str = "key-of-the-program";

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Options of a worker at this level, or `None` if the machine lacks a feature for it.
async fn options(level: Level) -> Option<Options> {
    let user = (level == Level::User).then_some(User { uid: 65534, gid: 65534 });
    if user.is_some() && !is_root() {
        unsupported(ANOTHER_USER, "run the tests as root");
        return None;
    }
    let isolation = Isolation { level, user, ..Isolation::default() };
    let host = Some(host());
    isolated(Options { isolation, host, python: PYTHON.into(), ..Options::default() }).await
}

/// Options at every level that the machine allows.
async fn at_each(levels: &[Level]) -> Vec<Options> {
    let mut available = Vec::new();
    for level in levels {
        available.extend(options(*level).await);
    }
    available
}

const CONFINED: [Level; 3] = [Level::Landlock, Level::Namespaces, Level::User];

async fn run(options: &Options, kind: &str, config: Value) -> Result<Value, Failure> {
    ToolRegistry::standard(options.clone()).run(kind, call(config)).await
}

fn has_python() -> bool {
    let exists = Path::new(PYTHON).exists();
    if !exists {
        missing(PYTHON, "apt-get install python3");
    }
    exists
}

/// A directory that every user may enter, with a file of the program and names that lead to it.
struct Home {
    dir: tempfile::TempDir,
    own: OwnFiles,
}

impl Home {
    fn new() -> Self {
        let dir = tempfile::TempDir::new().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let mut own = OwnFiles::default();
        own.add_database(&dir.path().join("noetl.db"));
        own.add(dir.path().join("encryption.key"));
        let home = Self { dir, own };
        // Readable for everybody, so that nothing but the sandbox keeps a step from it.
        fs::write(home.path("encryption.key"), SECRET).unwrap();
        let database = rusqlite::Connection::open(home.path("noetl.db")).unwrap();
        database
            .execute_batch("create table token (hash text); insert into token values ('x')")
            .unwrap();
        drop(database);
        for name in ["noetl.db", "encryption.key"] {
            fs::set_permissions(home.path(name), fs::Permissions::from_mode(0o666)).unwrap();
        }
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn tokens(&self) -> i64 {
        let database = rusqlite::Connection::open(self.path("noetl.db")).unwrap();
        database.query_row("select count(*) from token", [], |row| row.get(0)).unwrap()
    }
}

#[tokio::test]
async fn no_tool_opens_a_file_of_the_program_at_any_level() {
    let home = Home::new();
    symlink(home.path("encryption.key"), home.path("soft")).unwrap();
    fs::hard_link(home.path("encryption.key"), home.path("hard")).unwrap();
    symlink(home.path("noetl.db"), home.path("soft.db")).unwrap();
    fs::hard_link(home.path("noetl.db"), home.path("hard.db")).unwrap();
    let around =
        format!("{}/../{}/noetl.db", home.dir.path().display(), file_name(home.dir.path()));
    let databases = [home.text("noetl.db"), home.text("soft.db"), home.text("hard.db"), around];
    let mint = "insert into token values ('forged')";
    for level in Level::ALL {
        let Some(options) = options(level).await else { continue };
        let options = Options { own: home.own.clone(), ..options };
        for key in ["encryption.key", "soft", "hard"] {
            let script = json!({"script": {"source": {"type": "file", "path": home.text(key)}}});
            let failure = run(&options, "python", script).await.unwrap_err();
            assert_ne!(failure.kind, FailureKind::ToolMissing, "{level}: {failure}");
            assert!(!format!("{failure:?}").contains(SECRET), "{level} {key}: {failure:?}");
        }
        for path in &databases {
            let opened = run(&options, "sqlite", json!({"db_path": path, "query": mint})).await;
            assert!(opened.is_err(), "{level}: {path} was written");
            let attach = format!("attach '{path}' as own");
            let commands = [attach.as_str(), "insert into own.token values ('forged')"];
            let attached =
                run(&options, "sqlite", json!({"commands": commands, "autocommit": true}));
            assert!(attached.await.is_err(), "{level}: {path} was attached");
            let commands = ["attach :path as own", "insert into own.token values ('forged')"];
            let settings =
                json!({"commands": commands, "autocommit": true, "params": {"path": path}});
            let attached = run(&options, "sqlite", settings).await;
            assert!(attached.is_err(), "{level}: {path} was attached by a parameter");
            let side =
                json!({"kind": "sqlite", "db_path": path, "query": "select hash from token"});
            let target =
                json!({"kind": "sqlite", "db_path": home.text("copy.db"), "table": "token"});
            let read = run(&options, "transfer", json!({"source": side, "target": target})).await;
            assert!(read.is_err(), "{level}: {path} was read by a transfer");
            let source = json!({"kind": "sqlite", "query": "select 'forged' as hash"});
            let target = json!({"kind": "sqlite", "db_path": path, "table": "token"});
            let wrote =
                run(&options, "transfer", json!({"source": source, "target": target})).await;
            assert!(wrote.is_err(), "{level}: {path} was written by a transfer");
        }
        assert_eq!(home.tokens(), 1, "{level}");
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

#[tokio::test]
async fn processes_of_a_step_do_not_see_files_of_the_program_in_namespaces() {
    let home = Home::new();
    for options in at_each(&[Level::Namespaces, Level::User]).await {
        let level = options.isolation.level;
        let options = Options { own: home.own.clone(), ..options };
        let read = format!("cat {} {} || true", home.text("encryption.key"), home.text("noetl.db"));
        let seen = run(&options, "shell", json!({ "command": read })).await.unwrap();
        assert_eq!(seen["stdout"], "", "{level}");
        if has_python() {
            let code = format!(
                "try:\n    result = open({:?}).read()\nexcept OSError as error:\n    result = ''",
                home.text("encryption.key")
            );
            assert_eq!(
                run(&options, "python", json!({ "code": code })).await.unwrap(),
                "",
                "{level}"
            );
        }
        let write = format!(
            "echo gone >{}; rm -f {}; true",
            home.text("encryption.key"),
            home.text("noetl.db")
        );
        run(&options, "shell", json!({ "command": write })).await.unwrap();
        assert_eq!(fs::read_to_string(home.path("encryption.key")).unwrap(), SECRET, "{level}");
        assert_eq!(home.tokens(), 1, "{level}");
    }
}

#[tokio::test]
async fn file_tools_act_as_the_user_of_the_step() {
    let Some(options) = options(Level::User).await else { return };
    let home = Home::new();
    let closed = tempfile::TempDir::new().unwrap();
    let (mine, theirs) =
        (home.text("mine.db"), closed.path().join("root.db").display().to_string());
    let make = "create table t (a int); insert into t values (1); select a from t";
    let made = run(&options, "sqlite", json!({"db_path": mine, "query": make})).await.unwrap();
    assert_eq!(made["rows"], json!([{"a": 1}]));
    let owner = |path: &str| std::os::unix::fs::MetadataExt::uid(&fs::metadata(path).unwrap());
    assert_eq!(owner(&mine), 65534);
    let copy = home.text("vacuum.db");
    run(&options, "sqlite", json!({"db_path": mine, "query": format!("vacuum into '{copy}'")}))
        .await
        .unwrap();
    assert_eq!(owner(&copy), 65534);
    let copied = home.text("copied.db");
    run(&options, "sqlite", json!({"db_path": copied, "query": "create table t (a int, b blob)"}))
        .await
        .unwrap();
    let source =
        json!({"kind": "sqlite", "db_path": mine, "query": "select a, x'00ff' as b from t"});
    let target = json!({"kind": "sqlite", "db_path": copied, "table": "t"});
    let moved =
        run(&options, "transfer", json!({"source": source, "target": target})).await.unwrap();
    assert_eq!(moved["rows_transferred"], 1);
    let read = json!({"db_path": copied, "query": "select a, hex(b) as b from t"});
    assert_eq!(
        run(&options, "sqlite", read).await.unwrap()["rows"],
        json!([{"a": 1, "b": "00FF"}])
    );
    for query in [make.to_owned(), format!("attach '{theirs}' as x; create table x.t (a int)")] {
        let path = if query == make { &theirs } else { &mine };
        let settings = json!({"db_path": path, "query": query, "autocommit": true});
        assert!(run(&options, "sqlite", settings).await.is_err());
    }
    let failure = run(
        &options,
        "sqlite",
        json!({"db_path": mine, "query": format!("vacuum into '{theirs}'")}),
    );
    assert!(failure.await.is_err());
    assert!(!Path::new(&theirs).exists());
    let script = json!({"script": {"source": {"type": "file", "path": "/etc/shadow"}}});
    let failure = run(&options, "python", script).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::NotFound, "{failure}");
}

#[tokio::test]
async fn a_sandboxed_database_step_is_stopped_in_time() {
    let endless =
        "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n";
    for options in at_each(&CONFINED).await {
        let settings = json!({"query": endless, "timeout": 0.5});
        let failure = run(&options, "sqlite", settings).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Timeout, "{}", options.isolation.level);
    }
}

/// Ways to leave a process behind, each of which writes its number into the file `left`.
const ESCAPES: [(&str, &str); 4] = [
    ("background", "sh -c 'echo $$ >left; exec sleep 600' >/dev/null 2>&1 &"),
    ("session", "setsid sh -c 'echo $$ >left; exec sleep 600' >/dev/null 2>&1 &"),
    ("double fork", "(setsid sh -c '(echo $$ >left; exec sleep 600) &' >/dev/null 2>&1 &)"),
    (
        "daemon",
        "/usr/bin/python3 -c 'import os, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
open(\"left\", \"w\").write(str(os.getpid()))
time.sleep(600)' >/dev/null 2>&1",
    ),
];

/// Returns a script that starts a background process and then ends.
fn escape(script: &str, mark: &str) -> String {
    let script = script.replace("600", mark);
    format!(
        "{script}\nn=0; until [ -s left ] || [ $n = 2000 ]; do sleep 0.01; n=$((n+1)); done; cat left"
    )
}

/// Counts processes whose command line holds `mark`.
fn marked(mark: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.windows(mark.len()).any(|part| part == mark.as_bytes())).count()
}

#[tokio::test]
async fn no_process_of_a_shell_step_outlives_it() {
    for options in at_each(&CONFINED).await {
        for (name, script) in ESCAPES {
            if name == "daemon" && !has_python() {
                continue;
            }
            // A unique sleep time marks the processes of this step.
            let mark = format!("{}", 100_000 + rand_number());
            let command = escape(script, &mark);
            let answer = run(&options, "shell", json!({ "command": command })).await.unwrap();
            let printed = answer["stdout"].as_str().unwrap();
            assert!(printed.trim().parse::<u32>().is_ok(), "{name}: {answer}");
            assert_eq!(marked(&mark), 0, "{name} at level {}", options.isolation.level);
        }
    }
}

#[tokio::test]
async fn no_process_of_a_python_step_outlives_it() {
    if !has_python() {
        return;
    }
    for options in at_each(&CONFINED).await {
        let tools = ToolRegistry::standard(options.clone());
        for (name, script) in ESCAPES {
            let mark = format!("{}", 100_000 + rand_number());
            let command = escape(script, &mark);
            let code = format!(
                "import os, subprocess\nseen = subprocess.run(['sh', '-c', {command:?}], capture_output=True, text=True)\n\
                 result = [seen.stdout, os.getppid()]"
            );
            let answer = tools.run("python", call(json!({ "code": code }))).await.unwrap();
            assert!(answer[0].as_str().unwrap().trim().parse::<u32>().is_ok(), "{name}: {answer}");
            assert_eq!(marked(&mark), 0, "{name} at level {}", options.isolation.level);
        }
    }
}

#[tokio::test]
async fn no_process_outlives_a_step_that_is_stopped() {
    for options in at_each(&CONFINED).await {
        for kind in ["shell", "python"] {
            if kind == "python" && !has_python() {
                continue;
            }
            let mark = format!("{}", 100_000 + rand_number());
            let command = format!("trap '' TERM; setsid sleep {mark} & echo ready; sleep {mark}");
            let config = match kind {
                "shell" => json!({ "command": command }),
                _ => {
                    json!({"code": format!("import subprocess\nsubprocess.run(['sh', '-c', {command:?}])")})
                }
            };
            let captured = CapturedLog::default();
            let call = ToolCall { logs: captured.sink(), ..call(config) };
            let cancel = call.cancel.clone();
            let tools = ToolRegistry::standard(options.clone());
            let running = tokio::spawn(async move { tools.run(kind, call).await });
            captured.line("ready").await;
            cancel.cancel();
            let failure = running.await.unwrap().unwrap_err();
            assert_eq!(failure.kind, FailureKind::Cancelled, "{kind}");
            assert_eq!(marked(&mark), 0, "{kind} at level {}", options.isolation.level);
        }
    }
}

#[tokio::test]
async fn sandboxes_end_with_their_worker() {
    for options in at_each(&CONFINED).await {
        let mark = format!("{}", 100_000 + rand_number());
        let command = format!("setsid sleep {mark} & echo ready; sleep {mark}");
        let captured = CapturedLog::default();
        let call = ToolCall { logs: captured.sink(), ..call(json!({ "command": command })) };
        let tools = ToolRegistry::standard(options.clone());
        let running = tokio::spawn(async move { tools.run("shell", call).await });
        captured.line("ready").await;
        running.abort();
        let _ = running.await;
        // A process that replaces its program shows no command line for a moment, so one look that
        // finds none is not enough.
        let mut looks_without = 0;
        for _ in 0..500 {
            looks_without = if marked(&mark) == 0 { looks_without + 1 } else { 0 };
            if looks_without == 10 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        assert_eq!(looks_without, 10, "level {}", options.isolation.level);
    }
}

#[tokio::test]
async fn a_step_can_neither_signal_nor_trace_its_host_or_the_worker() {
    let own = std::process::id();
    for options in at_each(&CONFINED).await {
        let level = options.isolation.level;
        let command = format!(
            "kill -9 $PPID 2>/dev/null; kill -0 {own} 2>/dev/null && echo signaled; \
             cat /proc/{own}/environ /proc/$PPID/environ 2>/dev/null; echo alive"
        );
        let answer = run(&options, "shell", json!({ "command": command })).await.unwrap();
        assert_eq!(answer["stdout"], "alive\n", "{level}: {answer}");
    }
}

#[tokio::test]
async fn a_step_sees_no_process_but_its_own_in_namespaces() {
    for options in at_each(&[Level::Namespaces, Level::User]).await {
        let command = "ls /proc | grep -c '^[0-9][0-9]*$'";
        let answer = run(&options, "shell", json!({ "command": command })).await.unwrap();
        let seen: usize = answer["stdout"].as_str().unwrap().trim().parse().unwrap();
        assert!(seen <= 5, "{}: {seen}", options.isolation.level);
    }
}

#[tokio::test]
async fn steps_of_two_tenants_never_share_a_user_a_host_or_an_interpreter() {
    if !is_root() {
        return unsupported("users of their own", "run the tests as root");
    }
    let Some(options) = options(Level::User).await else { return };
    let users = "300000-300099".parse().unwrap();
    let isolation = Isolation { user: None, users: Some(users), ..options.isolation.clone() };
    let tools = ToolRegistry::standard(Options { isolation, ..options });
    let mut seen = Vec::new();
    for tenant in ["acme", "globex", "acme", "globex"] {
        let of = |config: Value| ToolCall { tenant: Tenant::new(tenant), ..call(config) };
        let shell = json!({"command": "id -u; readlink /proc/self/ns/pid"});
        let shell = tools.run("shell", of(shell)).await.unwrap()["stdout"].to_string();
        let mut python = Value::Null;
        if has_python() {
            let code = "import os\nresult = [os.getuid(), os.readlink('/proc/self/ns/pid')]";
            python = tools.run("python", of(json!({ "code": code }))).await.unwrap();
        }
        seen.push((shell, python));
    }
    // The same host and interpreter again for the same tenant, others for the other.
    assert_eq!(seen[0], seen[2]);
    assert_eq!(seen[1], seen[3]);
    assert_ne!(seen[0].0, seen[1].0);
    assert!(!has_python() || seen[0].1[0] != seen[1].1[0]);
}

#[tokio::test]
async fn a_second_tenant_needs_namespaces_or_an_override() {
    for (level, share, is_served) in [
        (Level::None, false, false),
        (Level::None, true, true),
        (Level::Landlock, false, false),
        (Level::Namespaces, false, true),
    ] {
        let Some(options) = options(level).await else { continue };
        let tools = ToolRegistry::standard(Options { share_tenants: share, ..options });
        let of = |tenant: &str| ToolCall {
            tenant: Tenant::new(tenant),
            ..call(json!({"command": "true"}))
        };
        tools.run("shell", of("first")).await.unwrap();
        tools.run("shell", of("first")).await.unwrap();
        let second = tools.run("shell", of("second")).await;
        assert_eq!(second.is_ok(), is_served, "level {level}: {second:?}");
    }
}

#[tokio::test]
async fn steps_use_the_directories_of_their_tenant_and_no_others() {
    let home = Home::new();
    for name in ["open", "read", "closed"] {
        fs::create_dir(home.path(name)).unwrap();
        fs::set_permissions(home.path(name), fs::Permissions::from_mode(0o777)).unwrap();
        fs::write(home.path(name).join("file"), "result = 'read'").unwrap();
    }
    let root = |name: &str, suffix: &str| format!("{}{suffix}", home.text(name));
    let paths = format!("{},{}", root("open", ""), root("read", "=ro"));
    for options in at_each(&CONFINED).await {
        let level = options.isolation.level;
        let options = Options { paths: paths.parse().unwrap(), ..options };
        let command = format!(
            "cd {0}; cat open/file read/file >/dev/null && echo one; echo x >open/new && echo two; \
             cat closed/file; echo x >read/new && echo three; echo x >mine && echo four; true",
            home.dir.path().display()
        );
        let command = format!("echo x >mine && echo zero; {command}");
        let answer = run(&options, "shell", json!({ "command": command })).await.unwrap();
        assert_eq!(answer["stdout"], "zero\none\ntwo\n", "{level}: {answer}");
        let make = |path: String| json!({"db_path": path, "query": "create table if not exists t (a int)"});
        run(&options, "sqlite", make(root("open", "/a.db"))).await.unwrap();
        for name in ["closed", "read"] {
            let refused = run(&options, "sqlite", make(root(name, "/a.db"))).await;
            assert!(refused.is_err(), "{level}: {name}");
        }
        fs::remove_file(home.path("open/new")).unwrap();
        fs::remove_file(home.path("open/a.db")).unwrap();
    }
    let level_0 = Options { paths: paths.parse().unwrap(), ..Options::default() };
    let script =
        |name: &str| json!({"script": {"source": {"type": "file", "path": root(name, "/file")}}});
    let failure = run(&level_0, "python", script("closed")).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Config, "{failure}");
    let _: AllowedDirectory = AllowedDirectory { path: "/".into(), writable: false };
}

#[tokio::test]
async fn tools_that_are_not_on_the_list_of_a_tenant_are_rejected() {
    let options =
        Options { tools: "noop; acme: noop,shell".parse().unwrap(), ..Options::default() };
    let tools = ToolRegistry::standard(options);
    let of =
        |tenant: &str| ToolCall { tenant: Tenant::new(tenant), ..call(json!({"command": "true"})) };
    tools.run("shell", of("acme")).await.unwrap();
    let failure = tools.run("shell", of("globex")).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Config);
    assert!(failure.message.contains("NOETL_STEP_TOOLS"), "{failure}");
}

#[tokio::test]
async fn the_best_available_level_is_chosen_and_an_unavailable_one_is_rejected() {
    let mut options = Options { host: Some(host()), ..Options::default() };
    options.choose_isolation(Level::None).await.unwrap();
    assert_eq!(options.isolation.level.number(), isolation_level());
    options.prove_isolation().await.unwrap();
    let mut none = Options::default();
    none.choose_isolation(Level::None).await.unwrap();
    assert_eq!(none.isolation.level, Level::None);
    let error = none.choose_isolation(Level::Namespaces).await.unwrap_err();
    assert!(error.message.contains("level 2"), "{}", error.message);
    let mut user = Options { host: Some(host()), ..Options::default() };
    let error = user.choose_isolation(Level::User).await.unwrap_err();
    assert!(error.message.contains("3") && error.hint.is_some(), "{}", error.message);
}

/// Runs tests of this file again as a user without rights, who needs a namespace of users.
#[tokio::test]
async fn a_worker_without_rights_contains_its_steps() {
    if !is_root() {
        return unsupported("another user for the tests", "run the tests as root");
    }
    let work = tempfile::TempDir::new().unwrap();
    fs::set_permissions(work.path(), fs::Permissions::from_mode(0o777)).unwrap();
    // A clone in the home of root is out of that user's reach.
    let programs = tempfile::TempDir::new().unwrap();
    fs::set_permissions(programs.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (own, copied) = (programs.path().join("it"), programs.path().join("noetl-step-host"));
    fs::copy(std::env::current_exe().unwrap(), &own).unwrap();
    fs::copy(host(), &copied).unwrap();
    for test in [
        "sandbox::no_process_of_a_shell_step_outlives_it",
        "sandbox::no_process_of_a_python_step_outlives_it",
        "sandbox::no_tool_opens_a_file_of_the_program_at_any_level",
        "sandbox::processes_of_a_step_do_not_see_files_of_the_program_in_namespaces",
        "sandbox::a_step_can_neither_signal_nor_trace_its_host_or_the_worker",
        "sandbox::steps_use_the_directories_of_their_tenant_and_no_others",
    ] {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(&own);
        command.args([test, "--exact", "--nocapture"]).env("TMPDIR", work.path()).current_dir("/");
        command.env(HOST_VARIABLE, &copied);
        // That user cannot write the file, and what needs root runs in this process as well.
        command.env_remove("NOETL_TEST_SKIPS_FILE");
        let Ok(output) = command.output() else {
            return missing("setpriv", "apt-get install util-linux");
        };
        let stdout = String::from_utf8_lossy(&output.stdout);
        let complaint = String::from_utf8_lossy(&output.stderr);
        if complaint.contains("failed to execute") && complaint.contains("Permission denied") {
            return unsupported("the test program for another user", complaint.trim());
        }
        assert!(output.status.success(), "{test}: {stdout}\n{complaint}");
        let is_lacking =
            |line: &&str| line.starts_with("skipped: ") && !line.contains(ANOTHER_USER);
        if let Some(line) = stdout.lines().find(is_lacking) {
            unsupported("isolation for a user without rights", line);
        }
        assert!(stdout.contains("1 passed"), "{test}: {stdout}");
    }
}

fn rand_number() -> u32 {
    use std::hash::{BuildHasher as _, Hasher as _};
    let chance = std::collections::hash_map::RandomState::new().build_hasher().finish();
    u32::try_from(chance % 900_000_000).unwrap()
}

#[tokio::test]
async fn a_failing_step_in_a_sandbox_returns_its_exit_code() {
    for options in at_each(&CONFINED).await {
        let failure =
            run(&options, "shell", json!({"command": "echo out; echo err >&2; exit 7"})).await;
        let failure = failure.unwrap_err();
        assert_eq!(detail(&failure, "exit_code"), 7);
        assert_eq!(detail(&failure, "stdout"), "out\n");
        let failure = run(&options, "shell", json!({"command": "true", "cwd": "/not/there"})).await;
        assert_eq!(failure.unwrap_err().kind, FailureKind::Config);
        let failure = run(&options, "shell", json!({"command": "kill -9 $$"})).await.unwrap_err();
        assert_eq!(detail(&failure, "exit_code"), 137);
    }
}

#[tokio::test]
async fn a_host_survives_the_signals_of_its_service() {
    for options in at_each(&[Level::Landlock]).await {
        let captured = CapturedLog::default();
        let command = "echo host $PPID; sleep 1; echo over";
        let call = ToolCall { logs: captured.sink(), ..call(json!({ "command": command })) };
        let tools = ToolRegistry::standard(options);
        let running = tokio::spawn(async move { tools.run("shell", call).await });
        let host = captured.line("host ").await;
        let pid = rustix::process::Pid::from_raw(host.parse().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let answer = running.await.unwrap().unwrap();
        assert!(answer["stdout"].as_str().unwrap().ends_with("over\n"));
        assert_gone(&host).await;
    }
}
