//! Results that are large: through the worker, past the server's memory.

use std::fs;

use noetl_api::Client;
use noetl_test_services::postgres::TestDatabase;

use super::{Site, WorkerProcess, answer, log};
use crate::dev_process::DevProcess;
use crate::noetl::playbook;

const MIB: u64 = 1024 * 1024;

/// Bytes of the text that passes through.
const TEXT: u64 = 50 * 1_000_000;

/// Maximum growth of the server's memory.
const GROWTH_MAX: u64 = 32 * MIB;

/// Returns the current or peak memory of a process in bytes.
fn memory(process: u32, what: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(&format!("{what}:"))).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() * 1024
}

/// A step makes a large text, the next measures it, one hands it on whole, the last sees what came of
/// that.
fn passing() -> String {
    let steps = format!(
        "  - step: start
    tool: {{kind: python, code: \"result = {{'n': 1, 'text': 'abcdefghij' * {}}}\"}}
    next: {{arcs: [{{step: look}}]}}
  - step: look
    tool:
      - {{name: size, kind: noop, result: {{size: '{{{{ start.text | length }}}}'}}}}
      - {{name: last, kind: noop, result: {{size: '{{{{ size.size }}}}', half: '{{{{ size.size // 2 }}}}'}}}}
    next: {{arcs: [{{step: pass}}]}}
  - step: pass
    tool:
      - {{name: name, kind: noop, result: {{ref: '{{{{ start._ref }}}}'}}}}
      - {{name: whole, kind: artifact, action: get, input: {{result_ref: '{{{{ name.ref }}}}'}}}}
    next: {{arcs: [{{step: end}}]}}
  - step: end
    tool: {{kind: noop, result: {{size: '{{{{ look.size }}}}', half: '{{{{ look.half }}}}',
            n: '{{{{ pass.n }}}}'}}}}
",
        TEXT / 10
    );
    playbook("{}", &steps)
}

async fn passes(server: &DevProcess, client: &Client) {
    // What every execution needs is there before it is measured.
    let small = playbook("{}", "  - {step: start, tool: {kind: python, code: 'result = 1'}}\n");
    let id = server.execute(&small).await;
    assert_eq!(server.ended(id).await, "COMPLETED");
    let before = memory(server.id(), "VmHWM");
    let id = server.execute(&passing()).await;
    let ended = server.ended(id).await;
    let log = log(client, id).await;
    let error = log.last().and_then(|event| event.error.clone());
    assert_eq!(ended, "COMPLETED", "{error:?}");
    let end = serde_json::json!({"size": TEXT, "half": TEXT / 2, "n": 1});
    assert_eq!(answer(&log, "end"), end);
    let passed = answer(&log, "pass");
    assert!(passed["n"] == 1 && passed["text"].is_null(), "the text is kept apart");
    let growth = memory(server.id(), "VmHWM") - before;
    assert!(growth <= GROWTH_MAX, "the server grew by {} MiB", growth / MIB);
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_megabytes_pass_through_a_server_on_sqlite_in_little_memory() {
    let site = Site::new(&[]);
    let _worker = site.worker("w");
    passes(&site.server, site.client()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_megabytes_pass_through_a_server_on_postgres_in_little_memory() {
    let database = TestDatabase::new();
    let server = DevProcess::start_on(&database.url(), 0, &[]);
    let _worker = WorkerProcess::start(&server.client, "w", &[]);
    passes(&server, &server.client).await;
}
