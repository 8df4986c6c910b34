//! Sections of the root beside the workflow.

use std::time::Duration;

use insta::assert_snapshot;
use serde_json::json;

use super::{HEAD, check, report};

const STEPS: &str = "  - {step: start, tool: {kind: noop}}\n  - {step: last, tool: {kind: noop}}\n";

/// Returns a playbook with one step.
fn with(head: &str) -> String {
    format!("{head}{HEAD}  - {{step: start, tool: {{kind: noop}}}}\n")
}

/// Returns a playbook with two unconnected steps.
fn with_last(head: &str) -> String {
    format!("{head}{HEAD}{STEPS}")
}

#[test]
fn the_executor_names_the_last_step_and_limits() {
    let text = with_last(
        "executor: {spec: {final_step: last, policy: {limits: {deadline_s: 3600}, defaults: {timeout: 30s}}}}\n",
    );
    assert_eq!(report(&text), "");
    let playbook = check(&text).playbook.expect("no errors");
    assert_eq!(playbook.final_step.map(|ix| ix.0), Some(1));
    assert_eq!(playbook.deadline, Some(Duration::from_secs(3600)));
    let timeout = playbook.steps[0].tool().and_then(|tool| tool.timeout);
    assert_eq!(timeout, Some(Duration::from_secs(30)));
    assert_eq!(playbook.steps[0].timeout, None);
    let waits = text.replace(
        "{step: last, tool: {kind: noop}}",
        "{step: last, tool: {kind: wait, seconds: 90}}",
    );
    let playbook = check(&waits).playbook.expect("no errors");
    assert_eq!(playbook.steps[1].tool().and_then(|tool| tool.timeout), None);
    assert_snapshot!(report(&with("tracing: {on: true}\n")), @r"
    warning[W114] at 1:1, tracing: 'tracing' has no effect
      help: remove it; who starts an execution asks for a trace with 'trace'
    ");
}

#[test]
fn a_final_step_named_end_is_not_an_implicit_end() {
    let text = format!(
        "executor: {{spec: {{final_step: end}}}}\n{HEAD}  - {{step: a, tool: {{kind: noop}}}}\n  - {{step: end, tool: {{kind: noop}}}}\n"
    );
    let playbook = check(&text).playbook.expect("no errors");
    assert_eq!(playbook.implicit_end, None);
    assert_eq!(playbook.final_step.map(|ix| ix.0), Some(1));
}

#[test]
fn mistakes_in_the_executor_are_reported() {
    assert_snapshot!(report(&with_last("executor:
  spec:
    final_step: lats
    pool: big
    no_next_is_error: maybe
    policy: {limits: {deadline_s: never, max_payload: 3}, defaults: {retries: 3}, results: {}, other: 1}
")), @r"
    error[E006] at 3:17, executor.spec.final_step: there is no step named 'lats' to end with
      help: did you mean 'last'?
    warning[W114] at 4:5, executor.spec.pool: 'pool' has no effect; who starts an execution says which workers take it
      help: remove it, and start with 'execution_pool'
    error[E009] at 5:23, executor.spec.no_next_is_error: expected true or false, found text
      help: write true or false
    error[E009] at 6:35, executor.spec.policy.limits.deadline_s: this is not a timeout between 1 ns and one year
      help: write seconds (30, 0.5) or a number with a unit: 500ms, 30s, 5m, 1h
    warning[W114] at 6:55, executor.spec.policy.limits.max_payload: 'max_payload' of the executor's policy has no effect
      help: remove it; the server's own limits hold
    warning[W114] at 6:79, executor.spec.policy.defaults.retries: 'retries' of the executor's policy has no effect
      help: write it where it is meant: 'timeout' and 'spec.policy.rules' of a tool
    warning[W114] at 6:92, executor.spec.policy.results: 'results' of the executor's policy has no effect
      help: remove it; a large result is kept beside the log by itself
    warning[W102] at 6:96, executor.spec.policy.other: unknown key 'other', which has no effect
      help: remove it; known here: defaults, limits, results
    ");
    assert_snapshot!(report(&with_last("executor: {spec: {final_step: start, policy: 5}}\n")), @r"
    error[E006] at 1:31, executor.spec.final_step: the execution begins with its final step
      help: name another step
    error[E009] at 1:46, executor.spec.policy: expected a mapping, found a number
      help: write 'policy: {limits: {deadline_s: 3600}}'
    ");
    let arcs = format!(
        "executor: {{spec: {{final_step: end}}}}\n{HEAD}  - {{step: a, next: {{arcs: [{{step: end}}]}}}}\n  - {{step: end, tool: {{kind: noop}}}}\n"
    );
    assert_snapshot!(report(&arcs), @r"
    warning[W117] at 1:31, executor.spec.final_step: arcs lead to the final step, so it runs there and once more in the end
      help: lead those arcs to another step, or remove them
    ");
}

#[test]
fn the_keychain_is_decoded() {
    let text = with(
        "keychain: [{name: api, kind: bearer, credential: c, map: {t: '{{ execution_id }}'}}, {name: k, kind: static}]\n",
    );
    assert_eq!(report(&text), "");
    let keychain = check(&text).playbook.expect("no errors").keychain;
    assert_eq!((&*keychain[0].name, &*keychain[0].kind), ("api", "bearer"));
    assert_eq!(
        json!(keychain[0].settings),
        json!({"credential": "c", "map": {"t": "{{ execution_id }}"}})
    );
    assert_eq!((&*keychain[1].name, keychain[1].settings.len()), ("k", 0));
}

#[test]
fn mistakes_in_the_keychain_are_reported() {
    assert_snapshot!(report(&with("keychain: [{name: a}, {kind: b}, text, {name: '', kind: 5}, {name: x, kind: y}, {name: x, kind: z}]\n")), @r"
    error[E019] at 1:12, keychain[0]: the entry of the keychain has no 'kind'
      help: write '- {name: api, kind: credential, …}'
    error[E019] at 1:23, keychain[1]: the entry of the keychain has no 'name'
      help: write '- {name: api, kind: credential, …}'
    error[E019] at 1:34, keychain[2]: an entry of the keychain is a mapping, found text
      help: write 'keychain: [{name: api, kind: credential, credential: my-api}]'
    error[E019] at 1:47, keychain[3].name: 'name' of a credential is a word
      help: write 'name: …' as text
    error[E019] at 1:57, keychain[3].kind: 'kind' of a credential is a word
      help: write 'kind: …' as text
    error[E019] at 1:81, keychain[5]: the credential 'x' is declared on line 1 already
      help: rename one of the two
    ");
    assert_snapshot!(report(&with("keychain: {name: a}\n")), @r"
    error[E019] at 1:11, keychain: the keychain is a list, found a mapping
      help: write 'keychain: [{name: api, kind: credential, credential: my-api}]'
    ");
    assert_eq!(report(&with("keychain: []\nworkbook: []\n")), "");
}

#[test]
fn notifications_are_read() {
    let notify = |text: &str| {
        let text = with(&format!("spec: {{notify: {text}}}\n"));
        assert_eq!(report(&text), "");
        let playbook = check(&text).playbook.expect("no errors");
        assert_eq!(playbook.spec, None);
        playbook.notify.expect("a notification")
    };
    let all = notify("{on: [failed, waiting, completed], webhook: 'https://example.org/hook'}");
    assert_eq!((all.on_failed, all.on_waiting, all.on_completed), (true, true, true));
    assert_eq!(all.webhook, "https://example.org/hook");
    let one = notify("{on: failed, webhook: 'http://example.org'}");
    assert_eq!((one.on_failed, one.on_waiting, one.on_completed), (true, false, false));
    let none = notify("{webhook: 'http://example.org'}");
    assert_eq!((none.on_failed, none.on_waiting, none.on_completed), (true, true, false));
    let text = with("spec: {notify: {webhook: 'http://example.org'}, state: ready}\n");
    let playbook = check(&text).playbook.expect("no errors");
    assert_eq!(playbook.spec, Some(json!({"state": "ready"})));
}

#[test]
fn mistakes_in_notifications_are_reported() {
    assert_snapshot!(report(&with("spec: {notify: {on: [broken], webhook: 'ftp://x', to: me}}\n")), @r#"
    error[E024] at 1:22, spec.notify.on[0]: 'broken' is not possible here
      help: write failed, waiting or completed
    error[E024] at 1:40, spec.notify.webhook: the webhook is not an http address
      help: write 'webhook: "https://…"'
    warning[W102] at 1:51, spec.notify.to: unknown key 'to', which has no effect
      help: remove it; known here: on, webhook
    "#);
    assert_snapshot!(report(&with("spec: {notify: {on: failed}}\n")), @r#"
    error[E024] at 1:16, spec.notify: the notification has no 'webhook' to go to
      help: write 'notify: {on: [failed, waiting], webhook: "https://…"}'
    "#);
    assert_snapshot!(report(&with("spec: {notify: {webhook: '{{ workload.x }}'}}\n")), @r"
    error[E024] at 1:26, spec.notify.webhook: the webhook is the same for every execution, so it is no template
      help: write the address itself
    ");
    assert_snapshot!(report(&with("spec: {notify: text}\n")), @r#"
    error[E009] at 1:16, spec.notify: expected a mapping, found text
      help: write 'notify: {on: [failed, waiting], webhook: "https://…"}'
    "#);
}

#[test]
fn unknown_keys_of_a_strict_playbook_are_errors() {
    assert_snapshot!(report(&format!("strict: true\ncolour: red\n{HEAD}  - {{step: a, tool: {{kind: noop, any: thing}}, nxt: b}}\n")), @r"
    error[E102] at 2:1, colour: unknown key 'colour', which a strict playbook refuses
      help: remove it; known here: apiVersion, kind, metadata, workload, keychain, workbook, workflow, executor, spec, strict
    error[E102] at 7:47, workflow[0].nxt: unknown key 'nxt', which a strict playbook refuses
      help: did you mean 'next'?
    ");
    assert_snapshot!(report(&with("strict: maybe\n")), @r"
    error[E009] at 1:9, strict: expected true or false, found text
      help: write true or false
    ");
}
