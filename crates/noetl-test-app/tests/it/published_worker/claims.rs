//! Responses to claims, none of which makes the worker poll without pause.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use noetl_bus::{EventStream, PublishAck, StreamMessage};
use noetl_model::{CommandId, Value};
use noetl_store::CommandStore;
use noetl_test_app::published_worker::{PublishedWorker, PublishedWorkerOptions};
use noetl_test_services::nats::TestNats;
use serde_json::json;
use tokio::sync::Semaphore;

use crate::published_worker::fixture::{
    app, bus, counted, ended, execute, options, playbook, register, start, until,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_published_worker_with_its_defaults_runs_a_playbook() {
    let nats = TestNats::start();
    let app = app(&nats).await;
    let worker = PublishedWorker::start(options(&app, &nats, "w1"));
    let text = playbook(
        "{who: Ada}",
        "  - step: start\n    tool: {kind: python, input: {who: '{{ workload.who }}'}, \
         code: 'result = {\"hello\": who}'}\n    next: {arcs: [{step: end}]}\n  \
         - {step: end, tool: {kind: noop, result: {said: '{{ start.hello }}'}}}\n",
    );
    let id = start(&app, &text).await;
    assert_eq!(ended(&app, id).await, ("COMPLETED".to_owned(), Some(json!({"said": "Ada"}))));
    assert_eq!(worker.stats.claims(), [200, 200]);
    let log = counted(&app, id).await;
    for kind in ["command.issued", "command.claimed", "command.started", "call.done", "step.exit"] {
        assert_eq!(log.get(kind), Some(&2), "{kind}: {log:?}");
    }
    worker.kill().await;
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn text_that_looks_like_a_template_survives_its_second_rendering() {
    let nats = TestNats::start();
    let app = app(&nats).await;
    let worker = PublishedWorker::start(options(&app, &nats, "w1"));
    let text = playbook(
        "{text: ''}",
        "  - step: start\n    tool: {kind: python, input: {text: '{{ workload.text }}'}, \
         code: 'result = {\"text\": text, \"length\": len(text)}'}\n    \
         next: {arcs: [{step: through}]}\n  \
         - step: through\n    tool:\n      - {name: a, kind: noop, result: '{{ start.text }}'}\n      \
         - {name: b, kind: shell, env: {T: '{{ a }}'}, command: 'printf %s \"$T\"'}\n    \
         next: {arcs: [{step: end}]}\n  \
         - {step: end, tool: {kind: noop, result: {first: '{{ start.text }}', \
         length: '{{ start.length }}', last: '{{ through.results.b.stdout }}'}}}\n",
    );
    register(&app, &text).await;
    for nasty in ["{{ 7 * 7 }}", "{% if %}", "{\"a\": \"{{ b }}\"}", "}} {{ ü '\"\n", "12", "{{"] {
        let payload = json!({ "text": nasty }).as_object().cloned().unwrap();
        let id = execute(&app, "tests/test", payload).await;
        let length = nasty.chars().count();
        // The worker ends each line of a command's output with a newline.
        let last = format!("{}\n", nasty.trim_end_matches('\n'));
        let expected = json!({"first": nasty, "length": length, "last": last});
        assert_eq!(ended(&app, id).await, ("COMPLETED".to_owned(), Some(expected)), "{nasty:?}");
    }
    worker.kill().await;
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_that_cannot_run_are_dropped_after_one_claim() {
    let nats = TestNats::start();
    let app = app(&nats).await;
    // Cancelled before a claim, while its announcement stays in the stream.
    let id = start(&app, &playbook("{}", "  - {step: s, tool: {kind: noop}}\n")).await;
    until("its announcement", async || nats.messages("noetl_commands").await.len() == 1).await;
    app.client.cancel(id, None).await.unwrap();
    // A command of a tool that published workers lack, announced by hand.
    let text = playbook("{}", "  - {step: s, tool: {kind: sqlite, query: select 1}}\n");
    let foreign = start(&app, &text).await;
    let open = app.store.open_commands(CommandId::new(i64::MIN), 10).await.unwrap();
    let unable = open.iter().find(|row| row.execution == foreign).expect("it waits").id;
    // And an announcement without a command.
    let (bus, mut messages) = (bus(&nats), Vec::new());
    bus.connected().await;
    for event in [unable.get(), 7] {
        let announcement = json!({
            "command_id": format!("1:s:{event}"), "event_id": event,
            "execution_id": foreign.get(), "step": "s", "server_url": app.base,
        });
        messages.push(StreamMessage {
            subject: "noetl.commands.shared.1".to_owned(),
            id: format!("by hand {event}"),
            payload: announcement.to_string().into_bytes(),
        });
    }
    assert_eq!(bus.publish(messages).await, vec![Ok(PublishAck::New); 2]);
    let worker = PublishedWorker::start(options(&app, &nats, "w1"));
    let last = start(&app, &playbook("{}", "  - {step: s, tool: {kind: noop}}\n")).await;
    assert_eq!(ended(&app, last).await.0, "COMPLETED");
    let mut claims = worker.stats.claims();
    claims.sort_unstable();
    assert_eq!(claims, [200, 409, 409, 409], "each was asked for once");
    assert_eq!(worker.stats.announcements.load(Ordering::Relaxed), 4);
    worker.kill().await;
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_while_the_store_is_unavailable_are_spaced_out() {
    let nats = TestNats::start();
    let app = app(&nats).await;
    let id = start(&app, &playbook("{}", "  - {step: s, tool: {kind: noop}}\n")).await;
    until("its announcement", async || nats.messages("noetl_commands").await.len() == 1).await;
    let worker = PublishedWorker::start(options(&app, &nats, "w1"));
    app.store.set_down(true);
    // Registration needs the store; a worker that fails at it is restarted.
    until("a claim or its end", async || !worker.stats.claims().is_empty() || worker.is_over())
        .await;
    app.store.set_down(false);
    let again = match worker.is_over() {
        true => Some(PublishedWorker::start(options(&app, &nats, "w2"))),
        false => None,
    };
    assert_eq!(ended(&app, id).await.0, "COMPLETED");
    let refused = worker.stats.claims().iter().filter(|status| **status == 503).count();
    assert!(refused <= 5, "{refused} claims were refused while the store was away");
    worker.kill().await;
    if let Some(again) = again {
        again.kill().await;
    }
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_claim_only_commands_of_their_pool() {
    let nats = TestNats::start();
    let app = app(&nats).await;
    let shared = PublishedWorker::start(options(&app, &nats, "shared-1"));
    let gpu = PublishedWorker::start(PublishedWorkerOptions {
        consumer: "worker-pool-gpu".to_owned(),
        filter: "noetl.commands.gpu.>".to_owned(),
        ..options(&app, &nats, "gpu-1")
    });
    register(&app, &playbook("{}", "  - {step: s, tool: {kind: noop}}\n")).await;
    let request = noetl_api::execute::ExecuteRequest {
        execution_pool: Some("gpu".to_owned()),
        ..noetl_api::execute::ExecuteRequest::path("tests/test", noetl_model::Map::new())
    };
    let id = app.client.execute(&request).await.unwrap().execution_id.get();
    let id = noetl_model::ExecutionId::new(id);
    assert_eq!(ended(&app, id).await.0, "COMPLETED");
    assert_eq!((gpu.stats.claims(), shared.stats.claims()), (vec![200], vec![]));
    gpu.kill().await;
    shared.kill().await;
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_result_is_stored_and_read_completely() {
    let nats = TestNats::start();
    let app = app(&nats).await;
    let worker = PublishedWorker::start(options(&app, &nats, "w1"));
    let text = playbook(
        "{}",
        "  - step: start\n    tool: {kind: python, code: \
         'result = {\"rows\": [\"x\" * 100 for _ in range(3000)], \"count\": 3000}'}\n    \
         next: {arcs: [{step: end}]}\n  \
         - step: end\n    tool:\n      \
         - {name: size, kind: python, input: {rows: '{{ start.rows }}'}, \
         code: 'result = {\"size\": len(rows)}'}\n",
    );
    let id = start(&app, &text).await;
    let (status, result) = ended(&app, id).await;
    assert_eq!((status.as_str(), result), ("COMPLETED", Some(json!({"size": 3000}))));
    worker.kill().await;
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_is_reported_as_started_before_its_tool_runs() {
    let nats = TestNats::start();
    let app = app(&nats).await;
    let gate = Arc::new(Semaphore::new(0));
    let worker = PublishedWorker::start(PublishedWorkerOptions {
        gate: Some(gate.clone()),
        ..options(&app, &nats, "w1")
    });
    let id = start(&app, &playbook("{}", "  - {step: s, tool: {kind: noop}}\n")).await;
    until("its beginning", async || worker.stats.started.load(Ordering::Relaxed) == 1).await;
    let log = counted(&app, id).await;
    assert_eq!((log.get("command.started"), log.get("call.done")), (Some(&1), None));
    gate.add_permits(1);
    assert_eq!(ended(&app, id).await.0, "COMPLETED");
    worker.kill().await;
    app.close().await;
}

/// A failing tool fails its step, with the failure kind of the control plane.
#[tokio::test(flavor = "multi_thread")]
async fn a_failing_tool_fails_its_step() {
    let nats = TestNats::start();
    let app = app(&nats).await;
    let worker = PublishedWorker::start(options(&app, &nats, "w1"));
    let text = playbook(
        "{}",
        "  - step: s\n    tool: {kind: shell, command: 'exit 3'}\n    \
         next: {arcs: [{step: end, on: error, set: {ctx.kind: '{{ output.error.kind }}', \
         ctx.code: '{{ output.error.exit_code }}'}}]}\n  \
         - {step: end, tool: {kind: noop, result: {kind: '{{ ctx.kind }}', code: '{{ ctx.code }}'}}}\n",
    );
    let id = start(&app, &text).await;
    let expected: Value = json!({"kind": "exit_code", "code": 3});
    assert_eq!(ended(&app, id).await, ("COMPLETED".to_owned(), Some(expected)));
    let hard = playbook("{}", "  - {step: s, tool: {kind: http, url: 'http://127.0.0.1:1/'}}\n");
    let id = start(&app, &hard).await;
    assert_eq!(ended(&app, id).await.0, "FAILED");
    tokio::time::sleep(Duration::from_millis(1)).await;
    worker.kill().await;
    app.close().await;
}

/// Rules retry by the fields of an error, `_attempt` is known to settings, and what tasks set is seen
/// by later ones, as on a worker of the control plane.
#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_sees_earlier_values_and_its_attempt_number() {
    let nats = TestNats::start();
    let app = app(&nats).await;
    let worker = PublishedWorker::start(options(&app, &nats, "w1"));
    let text = playbook(
        "{n: 1}",
        "  - step: start\n    tool:\n      \
         - name: run\n        kind: shell\n        env: {A: '{{ _attempt }}'}\n        \
         command: 'test \"$A\" = 3'\n        \
         spec: {policy: {rules: [{when: \"{{ output.error.kind == 'exit_code' }}\", \
         then: {do: retry, attempts: 5, delay: 0, set: {ctx.kind: '{{ output.error.kind }}'}}}]}}\n        \
         set: {x: '{{ n + 1 }}'}\n      \
         - {name: late, kind: shell, command: 'sleep 30', timeout: 1, spec: {policy: {rules: [\
         {when: '{{ output.error.retryable }}', then: {do: continue, set: {ctx.late: '{{ output.error.kind }}'}}}]}}}\n      \
         - {name: use, kind: python, input: {n: '{{ n + x }}'}, code: 'result = {\"n\": n}'}\n    \
         next: {arcs: [{step: end}]}\n  \
         - {step: end, tool: {kind: noop, result: {n: '{{ start.n }}', x: '{{ ctx.x }}', \
         kind: '{{ ctx.kind }}', late: '{{ ctx.late }}'}}}\n",
    );
    let id = start(&app, &text).await;
    let expected = json!({"n": 3, "x": 2, "kind": "exit_code", "late": "timeout"});
    assert_eq!(ended(&app, id).await, ("COMPLETED".to_owned(), Some(expected)));
    worker.kill().await;
    app.close().await;
}
