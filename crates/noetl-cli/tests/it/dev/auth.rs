//! `noetl dev` requires a token, and its own user needs no flag.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use crate::dev_process::DevProcess;
use crate::noetl::{CommandOutput, Home};

struct TokenServer {
    home: Home,
    dev: DevProcess,
}

impl TokenServer {
    fn start() -> Self {
        let home = Home::new();
        let dev = Self::open(&home);
        Self { home, dev }
    }

    fn open(home: &Home) -> DevProcess {
        let runtime = home.path().join("runtime");
        let runtime = runtime.to_str().expect("a path of text");
        let settings = [("NOETL_AUTH", "token"), ("XDG_RUNTIME_DIR", runtime)];
        DevProcess::start_with(&home.path().join("data"), &settings)
    }

    fn port(&self) -> u16 {
        self.dev.client.base().port().expect("a port")
    }

    /// Runs the program as the user of the server, with the server at this host.
    fn noetl(&self, arguments: &[&str], host: &str) -> CommandOutput {
        let mut command = self.home.command(arguments);
        command.args(["--server-url", &format!("http://{host}:{}", self.port())]);
        command.env("XDG_RUNTIME_DIR", self.home.path().join("runtime"));
        self.home.end_of(&mut command)
    }
}

#[test]
fn noetl_dev_accepts_only_its_own_user() {
    let closed = TokenServer::start();
    let file = format!("runtime/noetl/127.0.0.1-{}.token", closed.port());
    let file = closed.home.path().join(file);
    let meta = fs::metadata(&file).expect("a token");
    assert_eq!(meta.mode() & 0o777, 0o600);
    let token = fs::read_to_string(&file).expect("a token");
    let output = closed.noetl(&["executions"], "127.0.0.1");
    assert_eq!(output.code, Some(0), "{output:?}");
    // A name gets no token, wherever it leads.
    let output = closed.noetl(&["executions"], "localhost");
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("write 127.0.0.1 instead of localhost"), "{output:?}");
    let header = closed.noetl(&["token", "header"], "127.0.0.1");
    assert_eq!(header.stdout, format!("Authorization: Bearer {token}"));
    assert_eq!(closed.noetl(&["token", "header"], "localhost").code, Some(2));
    // One that others can read could be another's.
    fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).expect("set");
    assert_eq!(closed.noetl(&["executions"], "127.0.0.1").code, Some(2));
    let mut without = closed.home.command(["executions"]);
    without.args(["--server-url", closed.dev.client.base().as_str()]);
    assert_eq!(closed.home.end_of(&mut without).code, Some(2), "another user has no such file");
}

#[test]
fn a_sign_in_link_works_once_and_a_missing_token_is_replaced() {
    let closed = TokenServer::start();
    let link = closed.noetl(&["token", "link"], "127.0.0.1");
    assert!(link.stdout.contains("/sign-in#code="), "{link:?}");
    let names = |closed: &TokenServer| {
        let listed = closed.noetl(&["token", "list", "--json"], "127.0.0.1").json();
        let tokens = listed["tokens"].as_array().expect("a list").clone();
        tokens.iter().filter(|token| token["revoked_at"].is_null()).count()
    };
    assert_eq!(names(&closed), 1);
    let TokenServer { home, dev } = closed;
    drop(dev);
    fs::remove_dir_all(home.path().join("runtime")).expect("a logout takes the directory");
    let dev = TokenServer::open(&home);
    let closed = TokenServer { home, dev };
    let output = closed.noetl(&["executions"], "127.0.0.1");
    assert_eq!(output.code, Some(0), "{output:?}");
}
