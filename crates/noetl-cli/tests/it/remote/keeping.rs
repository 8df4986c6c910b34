use insta::assert_snapshot;

use super::Site;
use crate::noetl::CommandOutput;

#[test]
fn a_credential_is_stored_listed_read_and_removed() {
    let site = Site::new();
    let set = ["credential", "set", "db", "--type", "postgres", "--set", "password=sesame"];
    assert_snapshot!(site.noetl(&set).transcript(), @r"
    exit: 0
    --- stdout
    kept postgres credential db ([id])
    --- stderr
    'password' is shorter than 8 characters, so it is not recognised and replaced when it turns up in results or messages
    ");
    assert_snapshot!(site.noetl(&["credential", "list"]).transcript(), @r"
    exit: 0
    --- stdout
    NAME  TYPE      CHANGED               ID                  DESCRIPTION
    db    postgres  [time]  [id]
    --- stderr
    ");
    assert_snapshot!(site.noetl(&["list", "credential"]).transcript(), @r"
    exit: 0
    --- stdout
    NAME  TYPE      CHANGED               ID                  DESCRIPTION
    db    postgres  [time]  [id]
    --- stderr
    ");
    let shown = site.noetl(&["get", "credential", "db"]);
    assert_snapshot!(shown.transcript(), @r"
    exit: 0
    --- stdout
    name     db
    type     postgres
    id       [id]
    made     [time]
    changed  [time]
    --- stderr
    ");
    let whole = site.raw(&["credential", "get", "db", "--include-data", "--json"]).json();
    assert_eq!(whole["data"]["password"], "sesame", "{whole}");
    assert_snapshot!(site.noetl(&["credential", "delete", "db"]).transcript(), @r"
    exit: 0
    --- stdout
    Credential deleted successfully
    --- stderr
    ");
    assert_eq!(site.raw(&["credential", "get", "db"]).code, Some(2));
}

#[test]
fn credentials_are_read_from_files_and_stdin_and_invalid_ones_are_not_shown() {
    let site = Site::new();
    std::fs::create_dir(site.home.path().join("keys")).unwrap();
    site.home.write("keys/a.json", r#"{"name": "a", "type": "bearer", "data": {"token": "t"}}"#);
    site.home.write("keys/b.yaml", "kind: Credential\nname: b\ntype: bearer\ndata: {token: t}\n");
    assert_snapshot!(site.noetl(&["register", "credential", "-d", "keys"]).transcript(), @r"
    exit: 0
    --- stdout
    kept bearer credential a ([id])
    kept bearer credential b ([id])
    --- stderr
    credential 'a': 'token' is shorter than 8 characters, so it is not recognised and replaced when it turns up in results or messages
    credential 'b': 'token' is shorter than 8 characters, so it is not recognised and replaced when it turns up in results or messages
    ");
    assert_snapshot!(site.noetl(&["catalog", "register", "keys/b.yaml"]).transcript(), @r"
    exit: 0
    --- stdout
    kept bearer credential b ([id])
    --- stderr
    credential 'b': 'token' is shorter than 8 characters, so it is not recognised and replaced when it turns up in results or messages
    ");

    let mut command = site.command(&["credential", "set", "c", "--type", "bearer", "--data", "-"]);
    let output = fed(&mut command, "password: [sesame");
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(!output.stderr.contains("sesame"), "{}", output.stderr);
    let mut command = site.command(&["credential", "set", "c", "--type", "bearer", "--data", "-"]);
    assert_eq!(fed(&mut command, "token: sesame").code, Some(0));
    let empty = site.noetl(&["credential", "set", "d", "--type", "bearer"]);
    assert_snapshot!(empty.transcript(), @r"
    exit: 2
    --- stdout
    --- stderr
    error: nothing secret was given
      help: give --data FILE, --data - to read stdin, or --set KEY=VALUE
    ");
}

#[test]
fn a_subscription_is_registered_and_changes_state() {
    let site = Site::new();
    site.home.write("test.yaml", crate::noetl::one_step("{kind: noop}"));
    site.home.write("sub.yaml", SUBSCRIPTION);
    let output = site.raw(&["catalog", "register", "test.yaml", "sub.yaml"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_snapshot!(site.noetl(&["subscription", "list"]).transcript(), @r"
    exit: 0
    --- stdout
    no subscriptions
    --- stderr
    ");
    assert_snapshot!(site.noetl(&["subscription", "register", "tests/sub"]).transcript(), @r"
    exit: 0
    --- stdout
    subscription  [id]
    path          tests/sub
    state         REGISTERED
    last event    subscription.registered
    changed       [time]
    --- stderr
    ");
    let list = site.raw(&["subscription", "list", "--json"]).json();
    let id = list["subscriptions"][0]["subscription_id"].as_str().unwrap().to_owned();
    let mut states = Vec::new();
    for action in ["activate", "pause", "resume", "drain", "deactivate"] {
        let output = site.raw(&["subscription", action, &id, "--json"]);
        assert_eq!(output.code, Some(0), "{action}: {output:?}");
        states.push(output.json()["state"].as_str().unwrap().to_owned());
    }
    assert_snapshot!(states.join(" "), @"ACTIVE PAUSED ACTIVE DRAINING DEACTIVATED");
    let over = site.noetl(&["subscription", "pause", &id]);
    assert_eq!(over.code, Some(2), "{over:?}");
    assert_eq!(site.raw(&["subscription", "get", &id, "--json"]).json()["path"], "tests/sub");
}

#[test]
fn registered_workers_are_listed() {
    let site = Site::new();
    assert_snapshot!(site.noetl(&["workers"]).transcript(), @r"
    exit: 0
    --- stdout
    no workers have registered
    --- stderr
    ");
    let url = format!("{}api/worker/pool/register", site.dev.client.base());
    let body = r#"{"name": "far", "capacity": 4, "uri": "http://far:1", "status": "ready"}"#;
    let mut curl = site.home.other("curl");
    curl.args(["-sf", &url, "-H", "content-type: application/json", "-d", body]);
    let registered = site.home.end_of(&mut curl);
    assert_eq!(registered.code, Some(0), "{registered:?}");
    assert_snapshot!(site.noetl(&["workers", "--name", "far"]).transcript(), @r"
    exit: 0
    --- stdout
    NAME  STATUS  CAPACITY  ISOLATION  HEARTBEAT             ADDRESS
    far   ready   4         -          [time]  http://far:1
    --- stderr
    ");
    let all = site.raw(&["workers", "--json"]).json();
    assert_eq!((&all[0]["name"], &all[0]["capacity"]), (&"far".into(), &4.into()), "{all}");
    assert_eq!(site.noetl(&["workers", "--name", "near"]).stdout, "no workers have registered\n");
}

const SUBSCRIPTION: &str = "apiVersion: noetl.io/v1
kind: Subscription
metadata: {name: sub, path: tests/sub}
spec:
  source: nats
  mode: pull
  stream: orders
  dispatch: {playbook: tests/test}
";

/// Runs a command with this on its stdin.
fn fed(command: &mut std::process::Command, text: &str) -> CommandOutput {
    use std::io::Write as _;
    use std::process::Stdio;
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    CommandOutput {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
