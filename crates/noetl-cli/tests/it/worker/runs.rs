//! Runs of a worker without faults.

use std::path::Path;

use noetl_api::calls;
use noetl_api::catalog::RegisterRequest;
use noetl_api::credentials::PutCredential;
use noetl_api::execute::ExecuteRequest;
use noetl_model::ExecutionId;
use noetl_test_services::postgres::TestDatabase;
use serde_json::{Value, json};

use super::{Site, WorkerProcess, answer, claims, log};
use crate::dev_process::DevProcess;
use crate::examples::is_playbook;
use crate::noetl::{EXAMPLES, playbook, until};
use crate::shown::{self, Services};

/// Runs examples on a worker of a server, and compares what they print.
async fn examples(server: &DevProcess, wanted: impl Fn(&str) -> bool) {
    let services = Services::start();
    let all =
        shown::all(EXAMPLES, |name| is_playbook(name) && !["http", "approval"].contains(&name));
    for example in &all {
        let request = RegisterRequest::playbook(&example.text);
        server.client.register(&request, false).await.unwrap();
    }
    let mut run = 0;
    for example in all.iter().filter(|example| wanted(&example.name)) {
        let Some((path, workload, prints)) = example.server_run(&services) else { continue };
        let reply = server.client.execute(&ExecuteRequest::path(&path, workload)).await.unwrap();
        let id = ExecutionId::new(reply.execution_id.get());
        assert_eq!(server.ended(id).await, "COMPLETED", "{path}");
        let detail = server.client.execution(id).await.unwrap();
        assert_eq!(detail.result.as_ref(), Some(prints), "{path}");
        run += 1;
    }
    assert!(run >= 8, "{run} examples");
}

#[tokio::test(flavor = "multi_thread")]
async fn examples_print_their_documented_output_on_a_worker_of_a_sqlite_server() {
    let site = Site::new(&[]);
    let _worker = site.worker("w");
    examples(&site.server, |_| true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn examples_print_their_documented_output_on_a_worker_of_a_postgres_server() {
    let database = TestDatabase::new();
    let server = DevProcess::start_on(&database.url(), 0, &[]);
    let _worker = WorkerProcess::start(&server.client, "w", &[]);
    let some = [
        "hello",
        "join",
        "cycle",
        "errors",
        "pipeline",
        "retry",
        "set",
        "templates",
        "sub-playbook",
    ];
    examples(&server, |name| some.contains(&name)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_sent_sealed_and_are_not_stored() {
    let site = Site::new(&[]);
    let worker = site.worker("w");
    let secret = "hunter2-hunter2";
    let request = PutCredential {
        name: "vault".to_owned(),
        kind: "generic".to_owned(),
        data: json!({ "password": secret }),
        meta: None,
        tags: None,
        description: None,
    };
    site.client().ask(calls::put_credential(&request)).await.unwrap();
    let home = site.home.path().display();
    let steps = format!(
        "  - step: start
    tool:
      - name: use
        kind: shell
        env: {{PASSWORD: '{{{{ keychain.vault.password }}}}'}}
        command: 'echo \"$PASSWORD\" > {home}/seen; echo \"I was told $PASSWORD\"'
"
    );
    let keychain = "keychain:\n  - {name: vault, kind: credential}\n";
    let text = playbook("{}", &steps).replace("workflow:", &format!("{keychain}workflow:"));
    let id = site.server.execute(&text).await;
    assert_eq!(site.server.ended(id).await, "COMPLETED", "{:?}", log(site.client(), id).await);
    let seen = std::fs::read_to_string(site.home.path().join("seen")).unwrap();
    assert_eq!(seen.trim(), secret, "the tool has it");
    let result = answer(&log(site.client(), id).await, "start");
    assert_eq!(result["stdout"], "I was told «secret:vault.password»\n");
    let lines = site.client().ask(calls::logs(id, None, 0, None)).await.unwrap().body.to_string();
    assert!(lines.contains("I was told") && !lines.contains(secret), "{lines}");
    // Given once, in a form that only the worker can open. No caller showed a token here, and a
    // name that a worker sends is no actor.
    let database = site.home.path().join("data/noetl.db");
    drop(worker);
    let Site { home: _home, server } = site;
    server.kill();
    assert_eq!(audit(&database), "anybody credential.put; anybody sealed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_worker_resolves_only_the_placeholders_of_its_execution() {
    let site = Site::new(&[]);
    let _worker = site.worker("w");
    let secret = "hunter2-hunter2";
    let request = PutCredential {
        name: "vault".to_owned(),
        kind: "generic".to_owned(),
        data: json!({ "password": secret }),
        meta: None,
        tags: None,
        description: None,
    };
    site.client().ask(calls::put_credential(&request)).await.unwrap();
    let home = site.home.path().display();
    let forged = [
        ("LOWER", "'{{ \"«SECRET:vault.password»\" | lower }}'"),
        ("TRIM", "'{{ (\"«sec \" | trim) ~ (\" ret:vault.password»\" | trim) }}'"),
        ("JSON", r#"'{{ "\"\\u00absecret:vault.password\\u00bb\"" | fromjson }}'"#),
        ("BASE64", "'{{ \"wqtzZWNyZXQ6dmF1bHQucGFzc3dvcmTCuw==\" | b64decode }}'"),
        ("URL", "'{{ \"%C2%ABsecret:vault.password%C2%BB\" | urldecode }}'"),
        ("REPLACE", "'{{ \"«sXecret:vault.password»\" | replace(\"X\", \"\") }}'"),
        ("JOIN", "'{{ [\"«secret:\", \"vault.password»\"] | join(\"\") }}'"),
        ("PLUS", "'{{ \"«secret:vault\" ~ \".password»\" }}'"),
        ("GUESS", "'«secret:vault.password~1.AAAAAAAAAAAAAAAAAAAAAA»'"),
    ];
    let forged: String = forged.iter().map(|(name, value)| format!(", {name}: {value}")).collect();
    let steps = format!(
        "  - step: read
    tool: {{kind: secrets, credential: vault, field: password}}
    next: {{arcs: [{{step: use}}]}}
  - step: use
    tool:
      - name: one
        kind: shell
        env: {{GOOD: '{{{{ read.value }}}}'{forged}}}
        command: 'env > {home}/seen'
    next: {{arcs: [{{step: python}}]}}
  - step: python
    tool:
      kind: python
      input: {{good: '{{{{ read.value }}}}', halves: '{{{{ \"«secret:\" ~ \"vault.password»\" }}}}'}}
      code: |
        def main(good, halves):
            return {{'good': len(good), 'halves': halves == '\\u00absecret:vault.password\\u00bb'}}
"
    );
    let id = site.server.execute(&playbook("{}", &steps)).await;
    let shown = log(site.client(), id).await;
    assert_eq!(site.server.ended(id).await, "COMPLETED", "{shown:?}");
    let shown = log(site.client(), id).await;
    let seen = std::fs::read_to_string(site.home.path().join("seen")).unwrap();
    let of = |name: &str| {
        let line = seen.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
        line.unwrap_or_else(|| panic!("{name} is not in {seen}")).to_owned()
    };
    assert_eq!(of("GOOD"), secret);
    for name in ["LOWER", "TRIM", "JSON", "BASE64", "URL", "REPLACE", "JOIN", "PLUS", "GUESS"] {
        assert_eq!(of(name), "«secret:vault.password»", "{name}");
    }
    let answered = answer(&shown, "python");
    assert_eq!(answered, json!({"good": secret.len(), "halves": true}), "{shown:?}");
    let shown = format!("{shown:?}");
    assert!(shown.contains("«secret:vault.password»"), "{shown}");
    assert!(
        !shown.contains(secret) && !shown.contains("password~1."),
        "no secret, no tag: {shown}"
    );
}

/// Returns the recorded uses of secrets.
fn audit(database: &Path) -> String {
    let script = "import sqlite3, sys
rows = sqlite3.connect(sys.argv[1]).execute('select worker_id, operation from secret_audit').fetchall()
print('; '.join(' '.join(row) for row in rows), end='')";
    let output =
        std::process::Command::new("python3").args(["-c", script]).arg(database).output().unwrap();
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn step_logs_are_complete_when_their_steps_end() {
    let site = Site::new(&[]);
    let _worker = site.worker("w");
    let steps = "  - step: start
    tool: {kind: shell, command: 'for n in 1 2 3; do echo line $n; done; echo oops >&2'}
";
    let id = site.server.execute(&playbook("{}", steps)).await;
    assert_eq!(site.server.ended(id).await, "COMPLETED");
    let lines = site.client().ask(calls::logs(id, None, 0, None)).await.unwrap().value.lines;
    let mut output: Vec<String> =
        lines.iter().map(|line| format!("{} {}", line.stream, line.text)).collect();
    output.sort();
    assert_eq!(output, ["stderr oops", "stdout line 1", "stdout line 2", "stdout line 3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_has_its_own_workers_and_labels_are_shown() {
    let site = Site::new(&[]);
    let _shared = site.worker("shared-worker");
    let labels = ["--pool", "gpu", "--label", "region=west"];
    let _other = WorkerProcess::start(site.client(), "gpu-worker", &labels);
    let text = playbook("{}", "  - {step: start, tool: {kind: shell, command: 'true'}}\n");
    site.client().register(&RegisterRequest::playbook(&text), false).await.unwrap();
    let mut request = ExecuteRequest::path("tests/test", serde_json::Map::new());
    request.execution_pool = Some("gpu".to_owned());
    let reply = site.client().execute(&request).await.unwrap();
    let id = ExecutionId::new(reply.execution_id.get());
    assert_eq!(site.server.ended(id).await, "COMPLETED");
    assert_eq!(claims(&log(site.client(), id).await), ["gpu-worker"]);
    let listed = site.client().ask(calls::workers(None, Some("gpu-worker"))).await.unwrap();
    let labels: &Value = listed.value[0].labels.as_ref().unwrap();
    assert_eq!(labels, &json!({"region": "west", "pool_name": "gpu"}));
    assert_eq!(listed.value[0].capacity, Some(4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_waits_for_a_server_that_starts_later() {
    let site = Site::new(&[]);
    let base = site.client().base().clone();
    let Site { home, server } = site;
    server.kill();
    let client = noetl_api::Client::new(base.as_str()).unwrap();
    let worker = std::thread::spawn(move || WorkerProcess::start(&client, "early", &[]));
    let port = base.port().unwrap().to_string();
    let server = DevProcess::start_alone(&home.path().join("data"), &port, &[]);
    let worker = worker.join().unwrap();
    until("the worker to be listed", async || {
        let listed = server.client.ask(calls::workers(None, None)).await.unwrap().value;
        listed.iter().any(|it| it.name == "early")
    })
    .await;
    drop(worker);
}
