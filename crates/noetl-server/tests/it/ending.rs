//! Inputs that meet the end of their execution while it is being committed.

use futures::future::{join, join_all};
use noetl_test_app::TestApp;
use serde_json::{Value, json};

use crate::api::{post, register, started};
use crate::stores::on_every_store;

/// Twenty commands at a time.
const MANY: &str = "\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: many, path: tests/many}
workflow:
  - step: start
    loop: {in: '{{ range(20) | list }}', iterator: n, spec: {mode: parallel, max_in_flight: 20}}
    tool: {kind: python, code: 'result = {}'}
";

async fn send(app: &TestApp, path: String, body: Value) -> u16 {
    post(app, &path, body.to_string()).answer().await.0
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_cancels_and_finalizations_never_get_retry_responses() {
    on_every_store(async |app| {
        for _ in 0..50 {
            let id = started(app).await;
            let of = |action: &str| format!("/api/executions/{id}/{action}");
            let finalize = || send(app, of("finalize"), json!({"status": "COMPLETED"}));
            let cancel = send(app, of("cancel"), json!({}));
            let (cancelled, finalized) = join(cancel, join_all([finalize(), finalize()])).await;
            let mut statuses = [cancelled, finalized[0], finalized[1]];
            statuses.sort_unstable();
            let [won, lost @ ..] = statuses;
            assert_eq!(won, 200, "one ends it");
            assert!(lost.iter().all(|status| (400..500).contains(status)), "{statuses:?}");
        }
        assert_eq!(
            app.control.journal.metrics.conflicts.get(),
            0,
            "one process has nobody to conflict with"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn completions_concurrent_with_a_cancel_are_accepted() {
    on_every_store(async |app| {
        assert_eq!(register(app, MANY).await.0, 200);
        for _ in 0..20 {
            let body = json!({"path": "tests/many"}).to_string();
            let (_, begun) = post(app, "/api/execute", body).answer().await;
            let id = begun["execution_id"].as_str().expect("an id");
            let body = json!({"worker_id": "w", "max": 20, "wait_seconds": 0}).to_string();
            let (_, leased) = post(app, "/api/worker/lease", body).answer().await;
            let commands = leased["commands"].as_array().expect("commands");
            assert_eq!(commands.len(), 20, "{leased}");
            let reports = commands.iter().map(|command| {
                let command = &command["event_id"];
                let body = json!({
                    "execution_id": id, "event_type": "command.completed", "step": "start",
                    "context": {"command_id": command}, "worker_id": "w",
                });
                send(app, "/api/events".to_owned(), body)
            });
            let cancel = send(app, format!("/api/executions/{id}/cancel"), json!({}));
            let (_, reported) = join(cancel, join_all(reports)).await;
            assert!(reported.iter().all(|status| *status == 200), "{reported:?}");
        }
        assert_eq!(
            app.control.journal.metrics.conflicts.get(),
            0,
            "one process has nobody to conflict with"
        );
    })
    .await;
}
