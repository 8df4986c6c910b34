//! Tests of the settings of a step apart from its tool and arcs.

use std::time::Duration;

use insta::assert_snapshot;
use noetl_template::Guard;

use super::{playbook, report_steps};
use crate::assignment::SetScope;
use crate::document::FailureMode;

#[test]
fn a_condition_on_the_step_is_decoded() {
    let steps = "  - {step: a, when: '{{ workload.go }}', tool: {kind: noop}}\n";
    let playbook = playbook(steps);
    assert!(
        matches!(&playbook.steps[0].when, Some(Guard::Template(template)) if template.source() == "{{ workload.go }}")
    );
    assert_snapshot!(report_steps(steps), @r"
    warning[W101] at 5:15, workflow[0].when: a condition on the step itself is older; when it does not hold, the step is passed over
      help: put the condition on the arcs that lead to this step
    ");
}

#[test]
fn a_step_run_has_the_shortest_of_its_timeouts() {
    let limits = |spec: &str| {
        let playbook = playbook(&format!("  - {{step: a, tool: {{kind: noop}}, spec: {spec}}}\n"));
        (playbook.steps[0].timeout, playbook.steps[0].tool().and_then(|tool| tool.timeout))
    };
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    assert_eq!(limits("{timeout: 30}"), (seconds(30), seconds(30)));
    assert_eq!(
        limits("{timeout: 30, policy: {lifecycle: {timeout_s: 20, deadline_s: 40}}}"),
        (seconds(20), seconds(20))
    );
    assert_eq!(limits("{policy: {failure: {mode: best_effort}}}"), (None, None));
}

#[test]
fn failure_and_admission_are_read() {
    let playbook = playbook(
        "
  - step: a
    tool: {kind: noop}
    spec:
      policy:
        failure: {mode: best_effort}
        admit:
          mode: wait
          deadline_s: 60
          rules:
            - {when: '{{ ctx.busy }}', then: {allow: false}}
            - else: {then: {allow: true}}
  - step: b
    tool: {kind: noop}
    spec: {policy: {admit: {mode: wait, rules: [{when: true, allow: false}, {else: {allow: true}}]}}}
  - step: c
    tool: {kind: noop}
    spec: {policy: {admit: {mode: exclusive, rules: [{when: true, then: {allow: false}}]}}}
  - step: d
    tool: {kind: noop}
    spec: {policy: {admit: {rules: []}}}
",
    );
    assert_eq!(playbook.steps[0].failure, FailureMode::BestEffort);
    let admits: Vec<_> = playbook
        .steps
        .iter()
        .map(|step| {
            let admit = step.admit.as_ref()?;
            Some((admit.rules.iter().map(|(_, allow)| *allow).collect::<Vec<_>>(), admit.wait))
        })
        .collect();
    assert_eq!(
        admits,
        [
            Some((vec![false, true], Some(Duration::from_secs(60)))),
            Some((vec![false, true], Some(Duration::from_secs(3600)))),
            Some((vec![false], None)),
            None,
        ]
    );
}

#[test]
fn mistakes_in_a_steps_policy_are_reported() {
    assert_snapshot!(report_steps("
  - step: a
    tool: {kind: noop}
    spec:
      policy:
        lifecycle: {timeout_s: soon, timeot: 3}
        failure: {mode: never}
        emit: {events: []}
        colour: red
        admit:
          mode: sometimes
          deadline_s: 3
          rules:
            - {when: ctx.x, then: {}}
            - {then: {allow: true}}
            - {when: ctx.x, then: {allow: maybe}}
            - {when: '', then: {allow: true}}
            - text
  - step: b
    tool: {kind: noop}
    spec: {policy: {admit: {rules: text}, failure: 5}}
  - step: c
    tool: {kind: noop}
    spec: {policy: text}
"), @r#"
    error[E009] at 10:32, workflow[0].spec.policy.lifecycle.timeout_s: this is not a timeout between 1 ns and one year
      help: write seconds (30, 0.5) or a number with a unit: 500ms, 30s, 5m, 1h
    warning[W102] at 10:38, workflow[0].spec.policy.lifecycle.timeot: unknown key 'timeot', which has no effect
      help: remove it; known here: timeout_s, deadline_s
    error[E009] at 11:25, workflow[0].spec.policy.failure.mode: 'never' is not possible here
      help: write fail_fast or best_effort
    warning[W114] at 12:9, workflow[0].spec.policy.emit: 'emit' has no effect; every event is recorded
      help: remove it
    warning[W102] at 13:9, workflow[0].spec.policy.colour: unknown key 'colour', which has no effect
      help: remove it; known here: admit, lifecycle, failure, emit
    error[E041] at 15:17, workflow[0].spec.policy.admit.mode: 'sometimes' is not possible here
      help: write exclusive, inclusive or wait
    warning[W114] at 16:11, workflow[0].spec.policy.admit.deadline_s: 'deadline_s' has no effect on a token that does not wait
      help: write 'mode: wait', or remove it
    error[E041] at 18:15, workflow[0].spec.policy.admit.rules[0]: the rule does not say 'allow'
      help: write '- {when: "…", then: {allow: true}}' or '- else: {then: {allow: false}}'
    error[E041] at 19:15, workflow[0].spec.policy.admit.rules[1]: the rule has neither 'when' nor 'else'
      help: write '- {when: "…", then: {allow: true}}' or '- else: {then: {allow: false}}'
    error[E041] at 20:43, workflow[0].spec.policy.admit.rules[2].then.allow: 'allow' is true or false, found text
      help: write true or false
    error[E009] at 21:22, workflow[0].spec.policy.admit.rules[3].when: the condition is empty
      help: write a condition, or leave the key out for one that always holds
    error[E041] at 22:15, workflow[0].spec.policy.admit.rules[4]: a rule is a mapping, found text
      help: write '- {when: "…", then: {allow: true}}' or '- else: {then: {allow: false}}'
    error[E041] at 25:36, workflow[1].spec.policy.admit.rules: 'rules' is a list, found text
      help: write 'admit: {rules: [{when: "…", then: {allow: false}}]}'
    error[E009] at 25:52, workflow[1].spec.policy.failure: expected a word, found a number
      help: write fail_fast or best_effort
    error[E009] at 28:20, workflow[2].spec.policy: expected a mapping, found text
      help: write 'policy: {admit: …, lifecycle: …, failure: …}'
    "#);
}

#[test]
fn assignments_to_iter_without_a_reader_cause_warnings() {
    let steps = "
  - step: a
    set: {iter.x: 1}
    set_iter: {iter.y: 2}
    tool: {kind: noop}
    next: {arcs: [{step: a, set: {iter: {z: 3}}}]}
";
    let playbook = playbook(steps);
    let step = &playbook.steps[0];
    let targets = step.set.iter().chain(&step.router.arcs[0].set);
    assert!(targets.clone().all(|assignment| assignment.scope == SetScope::Iter));
    assert_eq!(
        targets.map(|assignment| assignment.path.join(".")).collect::<Vec<_>>(),
        ["y", "x", "z"]
    );
    assert_snapshot!(report_steps(steps), @r"
    warning[W114] at 7:10, workflow[0].set: 'iter' ends with the iteration, so nothing reads what is assigned here
      help: assign 'iter' beside a task or in its rules, or write 'ctx.name'
    warning[W101] at 8:5, workflow[0].set_iter: 'set_iter' is the older name of 'set' into iter
      help: write 'set: {iter.name: value}'
    warning[W114] at 10:34, workflow[0].next.arcs[0].set: 'iter' ends with the iteration, so nothing reads what is assigned here
      help: assign 'iter' beside a task or in its rules, or write 'ctx.name'
    ");
}

#[test]
fn secrets_are_absent_from_the_event_log() {
    assert_snapshot!(report_steps("
  - step: a
    loop: {in: '{{ keychain.a.b }}', iterator: i}
    tool: {kind: http, url: '{{ keychain.a.url }}', input: {t: '{{ keychain.a.b }}'}, auth: api, set: {ctx.t: '{{ keychain.a.b }}'}}
    set: {ctx.t: '{{ keychain.a.b }}'}
    next: {arcs: [{step: b, when: '{{ keychain.a.b }}'}]}
  - step: b
    tool: {kind: playbook, path: x, payload: {t: '{{ keychain.a.b }}'}}
"), @r#"
    error[E051] at 7:16, workflow[0].loop.in: a secret cannot be used here, because what is rendered here is recorded
      help: use 'keychain' in the settings or the input of a tool that a worker runs
    warning[W108] at 7:16, workflow[0].loop.in: the keychain declares no credential 'a'
      help: add 'keychain: [{name: a, kind: credential, …}]'
    error[E051] at 8:111, workflow[0].tool.set["ctx.t"]: a secret cannot be used here, because what is rendered here is recorded
      help: use 'keychain' in the settings or the input of a tool that a worker runs
    error[E051] at 9:18, workflow[0].set["ctx.t"]: a secret cannot be used here, because what is rendered here is recorded
      help: use 'keychain' in the settings or the input of a tool that a worker runs
    warning[W105] at 10:19, workflow[0].next.arcs[0]: the last arc has a condition, so it can happen that none is taken
      help: add an arc without 'when' at the end, or say 'spec: {on_no_match: complete}' (or fail)
    error[E051] at 10:35, workflow[0].next.arcs[0].when: a secret cannot be used here, because what is rendered here is recorded
      help: use 'keychain' in the settings or the input of a tool that a worker runs
    error[E051] at 12:50, workflow[1].tool.payload.t: a secret cannot be used here, because what is rendered here is recorded
      help: use 'keychain' in the settings or the input of a tool that a worker runs
    "#);
}

#[test]
fn the_older_key_of_a_credential_is_decoded() {
    let steps = "  - {step: a, tool: {kind: postgres, credential: pg, query: vacuum}}\n";
    let playbook = playbook(steps);
    let config = playbook.steps[0].tool().map(|tool| super::shown(&tool.config));
    assert_eq!(config, Some(serde_json::json!({"auth": "pg", "query": "vacuum"})));
    assert_snapshot!(report_steps(steps), @r"
    warning[W101] at 5:38, workflow[0].tool.credential: 'credential' is the older name of 'auth'
      help: write 'auth'
    ");
    assert_snapshot!(report_steps("  - {step: a, tool: {kind: postgres, credential: pg, auth: pg, query: vacuum}}\n"), @r"
    error[E016] at 5:38, workflow[0].tool.credential: 'credential' repeats 'auth'
      help: keep 'auth'
    ");
}

#[test]
fn each_kind_is_checked_for_required_keys() {
    assert_snapshot!(report_steps("
  - step: a
    tool: [{kind: postgres}, {kind: sqlite, sql: ''}, {kind: duckdb, commands: [vacuum]}, {kind: postgres, script: {uri: x}}, {kind: nats, operation: kv_put, bucket: b}, {kind: postgres, query: {a: b}}  , {kind: postgres, query: 5}]
  - step: b
    tool: [{kind: transfer, source: {}}, {kind: nats, action: publish}, {kind: nats, subject: a}, {kind: artifact}, {kind: secrets}]
  - step: c
    tool: {kind: playbook}
  - step: d
    tool: {kind: wait}
  - step: e
    tool: {kind: approval}
  - step: f
    tool: [{kind: python, script: {uri: 'file:///x'}}, {kind: python, code: {a: b}}, {kind: noop, idempotent: maybe}]
"), @r#"
    error[E015] at 7:12, workflow[0].tool[0]: tool kind 'postgres' needs 'query'
      help: add 'query: |' with the statement
    error[E015] at 7:50, workflow[0].tool[1].sql: 'sql' of tool kind 'sqlite' is empty
      help: add 'query: |' with the statement
    error[E009] at 7:195, workflow[0].tool[5].query: expected text, found a mapping
      help: put it in quotes, or write it as a block with '|'
    error[E009] at 7:230, workflow[0].tool[6].query: expected text, found a number
      help: put it in quotes, or write it as a block with '|'
    error[E015] at 9:12, workflow[1].tool[0]: tool kind 'transfer' needs 'target'
      help: add 'target: {kind: sqlite, table: …}'
    error[E015] at 9:42, workflow[1].tool[1]: tool kind 'nats' needs 'subject'
      help: add the 'subject' or the 'bucket' it is about
    error[E015] at 9:73, workflow[1].tool[2]: tool kind 'nats' needs 'action'
      help: add 'action: publish', or another
    error[E015] at 9:99, workflow[1].tool[3]: tool kind 'artifact' needs 'action'
      help: add 'action: get' or 'action: put'
    error[E015] at 11:11, workflow[2].tool: tool kind 'playbook' needs 'path'
      help: add 'path: …' of the playbook
    error[E015] at 13:11, workflow[3].tool: tool kind 'wait' needs 'seconds'
      help: add 'seconds: 30', 'duration: 5m' or 'until: "2030-01-01T00:00:00Z"'
    error[E009] at 17:77, workflow[5].tool[1].code: expected text, found a mapping
      help: put it in quotes, or write it as a block with '|'
    error[E009] at 17:111, workflow[5].tool[2].idempotent: expected true or false, found text
      help: write true or false
    "#);
}

#[test]
fn required_keys_can_be_arguments() {
    let steps = "
  - {step: a, tool: {kind: wait, input: {seconds: '{{ workload.n }}'}}, next: {arcs: [{step: b, spec: {}}]}}
  - {step: b, tool: {kind: python, data: {x: 1}, code: x}, join: {mode: each}}
";
    let playbook = playbook(steps);
    let tool = playbook.steps[1].tool().expect("a tool");
    assert_eq!(super::shown(&tool.input), serde_json::json!({"x": 1}));
    assert_eq!(super::shown(&tool.config), serde_json::json!({"code": "x"}));
    assert_eq!(playbook.steps[1].join, crate::document::JoinRule::Each);
    assert_snapshot!(report_steps(steps), @r"
    warning[W114] at 6:97, workflow[0].next.arcs[0].spec: 'spec' of an arc has no effect
      help: remove it
    warning[W101] at 7:36, workflow[1].tool.data: 'data' is the older name of 'input'
      help: write 'input'
    ");
}
