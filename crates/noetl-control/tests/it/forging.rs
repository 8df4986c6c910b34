//! Forged placeholders: none of them resolves to a secret.

use std::sync::Arc;

use noetl_control::{ControlPlane, Options};
use noetl_journal::{ForkRequest, RetryRequest};
use noetl_model::event::ImportedEvent;
use noetl_model::placeholder::{has_tag, map_has_tag, without_tags};
use noetl_model::{EventId, ExecutionId, Fact, Map, Tenant, Timestamp, Value};
use noetl_secrets::EncryptionKey;
use noetl_store::{ExecutionStatus, Import, SystemClock};
use noetl_test_app::FaultyStore;
use noetl_tools::{SecretsTool, ToolRegistry};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

use crate::own::{register, rows_of};
use crate::plane::{Gate, TestPlane};
use crate::secrets::{LeakingTool, TOKEN, keep, plane};

/// A step that uses the credential, so that its alias is known in the execution, and one that sends
/// what a template makes of the workload.
fn playbook(template: &str) -> String {
    format!(
        "
  - step: first
    tool: {{kind: http, url: 'http://x', auth: api}}
    next: {{arcs: [{{step: second}}]}}
  - step: second
    tool:
      - {{name: one, kind: python, code: x, input: {{d: {template}}}}}
      - {{name: two, kind: http, url: 'http://x', input: {{d: {template}, e: '{{{{ one.d }}}}'}}}}
    next: {{arcs: [{{step: third}}]}}
  - step: third
    tool: {{kind: http, url: 'http://x', input: {{d: '{{{{ second.one.d }}}}', e: {template}}}}}
",
        template = serde_json::to_string(template).unwrap()
    )
}

/// Returns the inputs that tools were given after the credential was used.
async fn inputs_of(
    plane: &TestPlane,
    tool: &LeakingTool,
    workflow: &str,
    workload: Value,
) -> Vec<Value> {
    let Value::Object(workload) = workload else { panic!("a workload is a map") };
    let id = plane.start_with(workflow, workload).await;
    let row = plane.finished(id).await;
    assert_eq!(row.status, ExecutionStatus::Completed, "{:?}", row.error);
    let calls = std::mem::take(&mut *tool.0.lock().unwrap());
    calls.into_iter().skip(1).map(|call| Value::Object(call.input)).collect()
}

/// Runs a template over hostile text and checks that tools got a placeholder as text, and no more.
async fn forged(template: &str, workload: Value) {
    let tool = LeakingTool::default();
    let (plane, _) = plane(&tool).await;
    keep(&plane, "api", "bearer", json!({"token": TOKEN})).await;
    let inputs = inputs_of(&plane, &tool, &playbook(template), workload).await;
    assert_eq!(inputs.len(), 2);
    for input in inputs {
        let text = input.to_string();
        assert!(text.contains("secret:api.token"), "the template makes one: {text}");
        assert!(!text.contains("of the"), "{template}: {text}");
    }
    plane.close().await;
}

/// Placeholder with a guessed MAC.
const GUESSED: &str = "«secret:api.token~1.AAAAAAAAAAAAAAAAAAAAAA»";

#[tokio::test]
async fn text_turned_into_a_placeholder_by_lower_stays_text() {
    forged("{{ workload.d | lower }}", json!({"d": "«SECRET:API.TOKEN»"})).await;
}

#[tokio::test]
async fn text_turned_into_a_placeholder_by_trim_stays_text() {
    let halves = json!({"a": "«sec ", "b": " ret:api.token»"});
    forged("{{ (workload.a | trim) ~ (workload.b | trim) }}", halves).await;
}

#[tokio::test]
async fn text_turned_into_a_placeholder_by_fromjson_stays_text() {
    let text = "\"\\u00absecret:api.token\\u00bb\"";
    forged("{{ workload.d | fromjson }}", json!({ "d": text })).await;
}

#[tokio::test]
async fn text_turned_into_a_placeholder_by_b64decode_stays_text() {
    use base64::Engine as _;
    let encode = |text: &str| base64::prelude::BASE64_STANDARD.encode(text);
    for text in ["«secret:api.token»", GUESSED] {
        forged("{{ workload.d | b64decode }}", json!({"d": encode(text)})).await;
    }
}

#[tokio::test]
async fn text_turned_into_a_placeholder_by_urldecode_stays_text() {
    let text = "%C2%ABsecret:api.token%C2%BB";
    forged("{{ workload.d | urldecode }}", json!({ "d": text })).await;
}

#[tokio::test]
async fn text_turned_into_a_placeholder_by_replace_stays_text() {
    let text = GUESSED.replace("sec", "sXec");
    forged("{{ workload.d | replace('X', '') }}", json!({ "d": text })).await;
}

#[tokio::test]
async fn text_turned_into_a_placeholder_by_join_stays_text() {
    let parts = json!(["«sec", "ret:api.", "token»"]);
    forged("{{ workload.d | join('') }}", json!({ "d": parts })).await;
}

#[tokio::test]
async fn text_turned_into_a_placeholder_by_concatenation_stays_text() {
    let halves = json!({"a": "«", "b": "secret:api.token»"});
    forged("{{ workload.a ~ workload.b }}", halves).await;
    forged("{{ workload.a }}{{ workload.b }}", json!({"a": "«secret", "b": ":api.token»"})).await;
}

#[tokio::test]
async fn a_placeholder_written_by_the_author_stays_text() {
    forged("«secret:api.token»", json!({})).await;
    forged(GUESSED, json!({})).await;
}

#[tokio::test]
async fn placeholder_halves_joined_in_results_inputs_and_answers_stay_text() {
    let tool = LeakingTool::default();
    let (plane, _) = plane(&tool).await;
    keep(&plane, "api", "bearer", json!({"token": TOKEN})).await;
    // One half from a step's result, the other from an HTTP answer; together in a Python input.
    let workflow = "
  - step: first
    tool: {kind: http, url: 'http://x', auth: api}
    next: {arcs: [{step: half}]}
  - step: half
    tool: {kind: python, code: x, input: {v: '{{ workload.a }}'}}
    next: {arcs: [{step: answer}]}
  - step: answer
    tool: {kind: http, url: 'http://x', input: {v: '{{ workload.b }}'}}
    next: {arcs: [{step: both}]}
  - step: both
    tool: {kind: python, code: x, input: {v: '{{ half.v }}{{ answer.input.v }}'}}
    next: {arcs: [{step: use}]}
  - step: use
    tool: {kind: http, url: 'http://x', input: {v: '{{ both.v }}'}}
";
    let halves = json!({"a": "«secr", "b": "et:api.token»"});
    let inputs = inputs_of(&plane, &tool, workflow, halves).await;
    assert_eq!(inputs[1], json!({"v": "‹secret:api.token»"}));
    plane.close().await;
}

#[tokio::test]
async fn a_placeholder_of_another_execution_stays_text() {
    let tool = LeakingTool::default();
    let (plane, _) = plane(&tool).await;
    keep(&plane, "api", "bearer", json!({"token": TOKEN})).await;
    let read = "  - {step: start, tool: {kind: secrets, credential: api, field: token}}\n";
    let id = plane.start(read).await;
    plane.finished(id).await;
    let log = plane.log(id).await;
    let value = log.iter().find_map(|event| match &event.fact {
        Fact::CallDone { data, .. } => Some(data["value"].as_str().unwrap().to_owned()),
        _ => None,
    });
    let value = value.expect("the step answered");
    assert_eq!(without_tags(&value), "«secret:api.token»");
    assert!(has_tag(&json!(value)));
    // A reader of the database writes it into another execution, bypassing the API.
    let hidden = value.replacen("secret", "seXcret", 1);
    forged_in(&plane, &tool, "{{ workload.d | replace('X', '') }}", json!({ "d": hidden })).await;
    plane.close().await;
}

/// Text with a placeholder of an execution, which is valid in it.
async fn placeholder_of(plane: &TestPlane, id: ExecutionId) -> String {
    let values = tagged_values(plane, id).await;
    assert_eq!(values.len(), 1, "the secret that was read");
    values.into_iter().next().unwrap()
}

fn import(execution: ExecutionId, event: i64, row: ImportedEvent) -> (usize, Import) {
    let (tenant, event, at) = (Tenant::default(), EventId::new(event), Timestamp::default());
    (0, Import { tenant, execution, event, at, row })
}

#[tokio::test]
async fn a_placeholder_in_imported_rows_stays_text() {
    let (tool, gate) = (LeakingTool::default(), Gate::new());
    let options = Options { encryption_key: Some(EncryptionKey::generate()), ..Options::default() };
    let store = Arc::new(FaultyStore::default());
    let control = ControlPlane::open(options, store, Arc::new(SystemClock)).await.unwrap();
    let tools = ToolRegistry::default().with(SecretsTool).with(tool.clone()).with(gate.clone());
    let plane = TestPlane::with_tools(control, tools);
    keep(&plane, "api", "bearer", json!({"token": TOKEN})).await;
    let workflow = "
  - step: read
    tool: {kind: secrets, credential: api, field: token}
    next: {arcs: [{step: wait}]}
  - step: wait
    tool: {kind: shell, command: x}
    next: {arcs: [{step: use}]}
  - step: use
    tool: {kind: http, url: 'http://x', input: {own: '{{ read.value }}', imported: '{{ wait.v }}'}}
";
    let id = plane.start(workflow).await;
    gate.begun(1).await;
    let placeholder = placeholder_of(&plane, id).await;

    // An execution of another server: its rows are stored without tags, in every column.
    let other = ExecutionId::new(77);
    let row = ImportedEvent {
        event_type: Some("call.done".to_owned()),
        node_name: Some("a".into()),
        context: Some(json!({"in": [placeholder]})),
        result: Some(
            json!({"status": "COMPLETED", "context": {"v": placeholder, &placeholder: 1}}),
        ),
        meta: Some(json!({"note": format!("<{placeholder}>")})),
        error: Some(format!("failed with {placeholder}")),
        more: Map::from_iter([("stack_trace".to_owned(), json!(placeholder))]),
        ..ImportedEvent::default()
    };
    let summary =
        plane.control.publishing.imports.import(vec![import(other, 1, row)]).await.unwrap();
    assert_eq!((summary.kept, summary.rejected.len()), (1, 0), "{summary:?}");
    let log = plane.log(other).await;
    let Fact::Imported(stored) = &log[0].fact else { panic!("{:?}", log[0].fact) };
    let shown = format!("{stored:?}");
    assert_eq!(shown.matches("«secret:api.token»").count(), 6, "{shown}");
    assert!(!shown.contains('~'), "{shown}");

    // An execution of this server, in which the placeholder is valid: its rows are reports.
    let issued = plane.log(id).await.into_iter().rev().find_map(|event| match event.fact {
        Fact::CommandIssued(_) => Some(event.id),
        _ => None,
    });
    let command = issued.expect("a command").get().to_string();
    let result = json!({"status": "success", "context": {"v": placeholder}});
    let report = |event_type: &str, context: Value| ImportedEvent {
        event_type: Some(event_type.to_owned()),
        node_name: Some("wait".into()),
        result: Some(json!({"status": "COMPLETED", "context": context})),
        ..ImportedEvent::default()
    };
    let next = log_end(&plane, id).await + 1000;
    let done = report("call.done", json!({"command_id": command, "result": result}));
    let completed = report("command.completed", json!({"command_id": command}));
    let rows = vec![import(id, next, done), import(id, next + 1, completed)];
    let summary = plane.control.publishing.imports.import(rows).await.unwrap();
    assert_eq!((summary.kept, summary.rejected.len()), (2, 0), "{summary:?}");
    assert_eq!(plane.finished(id).await.status, ExecutionStatus::Completed);
    let calls = std::mem::take(&mut *tool.0.lock().unwrap());
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].input["own"], TOKEN, "the execution's own placeholder resolves");
    let imported = calls[0].input["imported"].as_str().unwrap();
    assert!(imported.contains("secret:api.token") && !imported.contains("of the"), "{imported}");
    plane.close().await;
}

/// Returns the ID of an execution's last event.
async fn log_end(plane: &TestPlane, id: ExecutionId) -> i64 {
    plane.log(id).await.last().expect("events").id.get()
}

async fn forged_in(plane: &TestPlane, tool: &LeakingTool, template: &str, workload: Value) {
    for input in inputs_of(plane, tool, &playbook(template), workload).await {
        assert!(!input.to_string().contains("of the"), "{template}: {input}");
    }
}

/// A step that reads a secret, and one that sends it and fails on request.
const READ_AND_USE: &str = "
  - step: read
    tool: {kind: secrets, credential: api, field: token}
    next: {arcs: [{step: use}]}
  - step: use
    tool: {kind: http, url: 'http://x', input: {t: '{{ read.value }}', fail: true}}
";

/// Returns every text with a tag in an execution's log.
async fn tagged_values(plane: &TestPlane, id: ExecutionId) -> Vec<String> {
    let mut values = Vec::new();
    for event in plane.log(id).await {
        if let Fact::CallDone { data: Value::Object(data), .. } = &event.fact
            && map_has_tag(data)
        {
            values.push(data["value"].as_str().unwrap().to_owned());
        }
    }
    values
}

#[tokio::test]
async fn a_retry_and_a_fork_have_placeholders_of_their_own_that_resolve() {
    let tool = LeakingTool::default();
    let (plane, _) = plane(&tool).await;
    keep(&plane, "api", "bearer", json!({"token": TOKEN})).await;
    let id = plane.start(READ_AND_USE).await;
    assert_eq!(plane.finished(id).await.status, ExecutionStatus::Failed);
    let first = tagged_values(&plane, id).await;
    assert_eq!(first.len(), 1);
    let executions = &plane.control.journal.executions;
    let retried = executions.retry(&plane.tenant, id, RetryRequest::default()).await.unwrap();
    let retried = retried.started.execution;
    plane.finished(retried).await;
    // Right after the secret was read, so that the fork runs the step that uses it.
    let log = plane.log(id).await;
    let read = log.iter().find(|event| matches!(event.fact, Fact::StepExited { .. })).unwrap();
    let request = ForkRequest { at: Some(read.id.get()), ..ForkRequest::default() };
    let forked = executions.fork(&plane.tenant, id, request).await.unwrap().started.execution;
    for other in [retried, forked] {
        plane.finished(other).await;
        let values = tagged_values(&plane, other).await;
        assert_eq!(values.len(), 1, "the secret that was read");
        assert_eq!(without_tags(&values[0]), without_tags(&first[0]));
        assert_ne!(values[0], first[0], "it is bound to its own execution");
    }
    let calls = std::mem::take(&mut *tool.0.lock().unwrap());
    assert_eq!(calls.len(), 3, "the first, the retry, and the fork");
    assert!(calls.iter().all(|call| call.input["t"] == TOKEN), "each got the secret");
    plane.close().await;
}

#[tokio::test]
async fn a_child_and_its_rerun_get_the_values_passed_by_the_parent() {
    let tool = LeakingTool::default();
    let (plane, _) = plane(&tool).await;
    keep(&plane, "api", "bearer", json!({"token": TOKEN})).await;
    let child = "  - {step: use, tool: {kind: http, url: 'http://x', \
                 input: {t: '{{ workload.t }}', forged: '{{ workload.f }}'}}}\n";
    register(&plane, "other/child", child).await;
    let parent = "
  - step: read
    tool: {kind: secrets, credential: api, field: token}
    next: {arcs: [{step: call}]}
  - step: call
    tool: {kind: playbook, path: other/child, return_result: true, input: {t: '{{ read.value }}', f: '«secret:api.token»'}}
";
    let id = plane.start(parent).await;
    assert_eq!(plane.finished(id).await.status, ExecutionStatus::Completed);
    let child = rows_of(&plane, "other/child").await[0].id;
    let trace = noetl_journal::TraceParent::default();
    let again =
        plane.control.journal.executions.rerun(&plane.tenant, child, Map::new(), trace).await;
    plane.finished(again.unwrap().execution).await;
    let calls = std::mem::take(&mut *tool.0.lock().unwrap());
    assert_eq!(calls.len(), 2);
    for call in calls {
        assert_eq!(call.input["t"], TOKEN);
        assert_eq!(call.input["forged"], "«secret:api.token»");
    }
    plane.close().await;
}

/// Text that attackers would send, whole, in parts and encoded.
fn hostile() -> impl Strategy<Value = String> {
    use base64::Engine as _;
    let encode = |text: String| base64::prelude::BASE64_STANDARD.encode(text);
    let part = prop_oneof![
        Just("«"),
        Just("»"),
        Just("secret:"),
        Just("SECRET:"),
        Just("api.token"),
        Just("api"),
        Just("."),
        Just("token"),
        Just("~1."),
        Just("AAAAAAAAAAAAAAAAAAAAAA"),
        Just("X"),
        Just(" "),
        Just("\\u00ab"),
        Just("%C2%AB"),
        Just("%C2%BB"),
        Just("\""),
        Just("‹"),
        Just("&laquo;"),
    ];
    let parts = prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat());
    let whole = prop_oneof![
        Just("«secret:api.token»".to_owned()),
        Just("«SECRET:API.TOKEN»".to_owned()),
        Just(GUESSED.to_owned()),
        Just("\"\\u00absecret:api.token\\u00bb\"".to_owned()),
        Just("%C2%ABsecret:api.token%C2%BB".to_owned()),
    ];
    let plain = prop_oneof![parts, whole];
    (plain, any::<bool>()).prop_map(
        move |(text, is_encoded)| {
            if is_encoded { encode(text) } else { text }
        },
    )
}

/// Templates over three texts that attackers sent.
fn template() -> impl Strategy<Value = String> {
    let source = prop_oneof![
        Just("workload.a"),
        Just("workload.b"),
        Just("workload.c"),
        Just("(workload.a ~ workload.b)"),
        Just("([workload.a, workload.b, workload.c] | join)"),
        Just("('«' ~ workload.a ~ '»')"),
        Just("('«secret:' ~ workload.b)"),
    ];
    let filter = prop_oneof![
        Just(" | lower"),
        Just(" | upper"),
        Just(" | trim"),
        Just(" | replace('X', '')"),
        Just(" | replace('‹', '«')"),
        Just(" | b64encode"),
        Just(" | urlencode"),
        Just(" | reverse"),
        Just(" | string"),
        Just(""),
    ];
    let last =
        prop_oneof![Just(""), Just(" | b64decode"), Just(" | urldecode"), Just(" | fromjson")];
    let one =
        (source, prop::collection::vec(filter, 0..4), last).prop_map(|(source, filters, last)| {
            format!("{{{{ {source}{}{last} }}}}", filters.concat())
        });
    prop::collection::vec(one, 1..4).prop_map(|all| all.concat())
}

#[test]
fn random_templates_over_hostile_text_never_make_a_credential() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let tool = LeakingTool::default();
    let plane = runtime.block_on(async {
        let (plane, _) = plane(&tool).await;
        keep(&plane, "api", "bearer", json!({"token": TOKEN})).await;
        plane
    });
    let mut runner = TestRunner::new(Config { cases: 96, ..Config::default() });
    let strategy = (template(), hostile(), hostile(), hostile());
    let result = runner.run(&strategy, |(template, a, b, c)| {
        runtime.block_on(async {
            let workload = json!({"a": a, "b": b, "c": c});
            let Value::Object(workload) = workload else { panic!("a workload is a map") };
            let id = plane.start_with(&playbook(&template), workload).await;
            // Most templates fail on such texts, which is as good.
            plane.finished(id).await;
            for call in std::mem::take(&mut *tool.0.lock().unwrap()).into_iter().skip(1) {
                let text = Value::Object(call.input).to_string();
                prop_assert!(!text.contains("of the"), "{}", text);
            }
            Ok(())
        })
    });
    runtime.block_on(plane.close());
    result.unwrap();
}
