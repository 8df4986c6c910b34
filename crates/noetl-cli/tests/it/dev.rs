mod auth;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use insta::assert_snapshot;
use noetl_api::catalog::RegisterRequest;
use noetl_api::execute::ExecuteRequest;
use rustix::process::Signal;
use serde_json::{Map, json};

use crate::dev_process::DevProcess;
use crate::noetl::{Home, one_step, playbook};

fn address(process: &DevProcess) -> SocketAddr {
    let base = process.client.base();
    format!("127.0.0.1:{}", base.port().unwrap()).parse().unwrap()
}

#[tokio::test]
async fn a_playbook_is_registered_and_executed_over_http() {
    let home = Home::new();
    let process = DevProcess::start(&home.path().join("data"));
    assert!(process.client.health().await.unwrap().is_ok());

    let text =
        playbook("{n: 1}", "  - {step: start, tool: {kind: noop, result: '{{ workload }}'}}\n");
    let registered =
        process.client.register(&RegisterRequest::playbook(text), false).await.unwrap();
    assert_eq!((registered.path.as_str(), registered.version), ("tests/test", 1));
    let payload = Map::from_iter([("n".to_owned(), json!(2))]);
    let started =
        process.client.execute(&ExecuteRequest::path("tests/test", payload)).await.unwrap();
    let id = noetl_model::ExecutionId::new(started.execution_id.get());
    assert_eq!(process.ended(id).await, "COMPLETED");
    assert_eq!(process.client.execution(id).await.unwrap().result, Some(json!({"n": 2})));
}

#[tokio::test]
async fn the_greeting_shows_commands_for_the_listen_address() {
    let home = Home::new();
    let process = DevProcess::start(&home.path().join("data"));
    let port = format!("127.0.0.1:{}", address(&process).port());
    let (_, output) = process.stop(Signal::TERM);
    let output =
        output.replace(home.path().to_str().unwrap(), "[home]").replace(&port, "[address]");
    let output = output.replace(crate::noetl::PROGRAM, "[noetl]");
    assert_snapshot!(output, @r"
    noetl listens on http://[address]
      database  [home]/data/noetl.db
      slots     8
      stop      Ctrl-C
      auth      open: every user and every program of this machine may do everything
    try in a second terminal:
      export NOETL_SERVER_URL=http://[address]
      [noetl] register playbook -f examples/hello.yaml
      [noetl] execute examples/hello --set who=Ada --follow
      [noetl] executions
    stopping: waiting for running steps; the rest continues at the next start
    ");
}

#[tokio::test]
async fn a_playbook_registered_twice_has_two_versions_and_the_newest_runs() {
    let home = Home::new();
    let process = DevProcess::start(&home.path().join("data"));
    for (version, result) in [(1, "old"), (2, "new"), (3, "new")] {
        let text = one_step(&format!("{{kind: noop, result: {result}}}"));
        let registered = process.client.register(&RegisterRequest::playbook(text), false).await;
        assert_eq!(registered.unwrap().version, version);
    }
    let id = process.execute(&one_step("{kind: noop, result: newest}")).await;
    process.ended(id).await;
    assert_eq!(process.client.execution(id).await.unwrap().result, Some(json!("newest")));
}

#[tokio::test]
async fn a_stop_signal_ends_the_process_cleanly_and_releases_the_database() {
    for signal in [Signal::TERM, Signal::INT] {
        let home = Home::new();
        let data = home.path().join("data");
        let process = DevProcess::start(&data);
        let id = process.execute(&one_step("{kind: noop}")).await;
        process.ended(id).await;
        let (code, output) = process.stop(signal);
        assert_eq!(code, Some(0), "{output}");
        assert!(output.contains("\nstopping: "), "{output}");
        assert_eq!(fs::read_to_string(data.join("noetl.db.lock")).unwrap(), "");
        assert!(!data.join("noetl.db-wal").exists(), "a clean end leaves no write-ahead log");
        let next = home.noetl(["run", "missing.yaml", "--db", "data/noetl.db"]);
        assert_eq!(next.code, Some(2));
    }
}

#[tokio::test]
async fn a_second_process_on_the_same_data_is_rejected() {
    let home = Home::new();
    let process = DevProcess::start(&home.path().join("data"));
    let output = home.noetl(["dev", "--port", "0", "--data", "data"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(3), ""));
    assert!(output.stderr.starts_with("error: data/noetl.db is in use by process "), "{output:?}");
    assert!(process.client.health().await.unwrap().is_ok());
}

#[tokio::test]
async fn malformed_requests_leave_the_server_running() {
    let home = Home::new();
    let process = DevProcess::start(&home.path().join("data"));
    let rubbish: [&[u8]; 6] = [
        b"\0\0\0\0\r\n\r\n",
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /api/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
          Content-Length: 2\r\n\r\n\xff\xfe",
        b"POST /api/execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"GET /api/executions/%00%ff HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    ];
    for sent in rubbish {
        let mut stream = TcpStream::connect(address(&process)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.write_all(sent).unwrap();
        let mut answer = [0; 1000];
        let count = stream.read(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer[..count]);
        assert!(answer.starts_with("HTTP/1.1 4"), "{sent:?}: {answer}");
    }
    let id = process.execute(&one_step("{kind: noop}")).await;
    assert_eq!(process.ended(id).await, "COMPLETED");
}

#[tokio::test]
async fn credentials_survive_a_restart_under_a_private_key_file() {
    use std::os::unix::fs::PermissionsExt as _;

    let home = Home::new();
    let data = home.path().join("data");
    let process = DevProcess::start(&data);
    let put = json!({"name": "a", "type": "t", "data": {"password": "s3cret"}}).to_string();
    let output = ask(
        &process,
        &format!(
            "POST /api/credentials HTTP/1.1\r\nHost: localhost\r\n\
        Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{put}",
            put.len()
        ),
    );
    assert!(output.starts_with("HTTP/1.1 200"), "{output}");
    process.stop(Signal::TERM);
    let mode = fs::metadata(data.join("encryption.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let database = fs::read(data.join("noetl.db")).unwrap();
    assert!(!database.windows(6).any(|window| window == b"s3cret"), "it is not kept as it is");
    let process = DevProcess::start(&data);
    let read = "GET /api/credentials/a?include_data=true HTTP/1.1\r\nHost: localhost\r\n\
        Connection: close\r\n\r\n";
    assert!(ask(&process, read).contains("s3cret"));
}

/// Sends a request as it is, and returns the answer.
fn ask(process: &DevProcess, request: &str) -> String {
    let mut stream = TcpStream::connect(address(process)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn an_invalid_key_prevents_the_start_and_is_not_shown() {
    let home = Home::new();
    let mut command = home.command(["dev", "--port", "0", "--data", "data"]);
    command.env("NOETL_ENCRYPTION_KEY", "bm8ga2V5");
    let output = home.end_of(&mut command);
    assert_snapshot!(output.transcript(), @r"
    exit: 3
    --- stdout
    --- stderr
    error: NOETL_ENCRYPTION_KEY: the encryption key has 6 bytes, and 32 are needed
      help: a key is base64 of 32 bytes: make one with `openssl rand -base64 32`
    ");
    assert!(!output.stderr.contains("bm8ga2V5"));
}
