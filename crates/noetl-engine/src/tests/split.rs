//! Pipelines that call playbooks.

use std::sync::Arc;

use noetl_model::event::BlobRef;
use noetl_model::{Event, Fact, Map};
use serde_json::{Value, json};

use super::forks::forked;
use super::harness::{Run, check, playbook, timers_of};
use super::own::with_final_step;
use crate::{
    Answer, AnswerSource, Cancel, Complete, Execution, Fork, Input, Status, TimerKind, ValueLimits,
};

const AROUND: &str = "- step: a\n  tool:\n  \
     - {name: pull, kind: noop}\n  \
     - {name: run, kind: playbook, path: other/one, return_step: end, \
        input: {n: '{{ pull.n }}', p: '{{ _prev.n }}'}, set: {ctx.seen: '{{ output.v }}'}}\n  \
     - {name: store, kind: noop, result: '{{ run.v }}'}\n  \
     next: {arcs: [{step: b}]}\n\
     - {step: b, tool: {kind: noop, result: '{{ a.pull.n }} {{ a.run.v }} {{ ctx.seen }}'}}\n";

/// Returns a worker's result of a segment with one task.
fn answer(name: &str, data: Value) -> Value {
    json!({"break": false, "tasks": [{"name": name, "data": data}]})
}

fn due(run: &Run, events: Vec<Event>) -> Vec<TimerKind> {
    timers_of(&run.state, &events).into_iter().map(|due| due.kind).collect()
}

/// Settings of the only open command.
fn open_issued(run: &Run) -> Arc<noetl_model::event::CommandSpec> {
    let mut open = run.state.open_commands();
    let (_, command) = open.next().expect("a command is open");
    command.issued.clone()
}

#[test]
fn a_pipeline_is_split_at_its_call() {
    check(
        AROUND,
        "start; claim a w; complete a {\"break\":false,\"tasks\":[{\"name\":\"pull\",\"data\":{\"n\":1}}]}; \
         child a {\"v\":7}; claim a w; complete a {\"n\":1,\"v\":7,\"pull\":{\"n\":1},\"run\":{\"v\":7}}",
        "\
start
  playbook_started
  step.enter a #1
  command.issued a attempt 1
claim a w
  command.claimed a by w
complete a {\"break\":false,\"tasks\":[{\"name\":\"pull\",\"data\":{\"n\":1}}]}
  call.done a {\"break\":false,\"tasks\":[{\"name\":\"pull\",\"data\":{\"n\":1}}]}
  command.completed a
  command.issued a attempt 1
  command.claimed a by control-plane
  command.parked a on a child
child a {\"v\":7}
  call.done a {\"v\":7}
  ctx.updated {\"seen\":7}
  command.completed a
  command.issued a attempt 1
claim a w
  command.claimed a by w
complete a {\"n\":1,\"v\":7,\"pull\":{\"n\":1},\"run\":{\"v\":7}}
  call.done a {\"n\":1,\"v\":7,\"pull\":{\"n\":1},\"run\":{\"v\":7}}
  command.completed a
  step.exit a done -> b
  step.enter b #1
  command.issued b attempt 1
",
    );
}

#[test]
fn a_call_sees_the_results_of_earlier_tasks() {
    let mut run = Run::started(AROUND);
    let events = run.complete("a", answer("pull", json!({"n": 1})));
    let asked = due(&run, events);
    let [TimerKind::StartChild { payload, child, .. }] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    assert_eq!(json!(payload), json!({"n": 1, "p": 1}));
    assert!(child.waits);
    run.script("child a {\"v\": 7}").unwrap();
    let issued = open_issued(&run);
    let scope = issued.scope.as_deref().unwrap();
    assert_eq!(&*issued.tool, "task_sequence");
    assert_eq!(issued.config["tasks"][0]["name"], json!("store"));
    assert_eq!(json!(scope.earlier), json!({"0": answer("pull", json!({"n": 1})), "1": {"v": 7}}));
    let split = scope.split.as_deref().unwrap();
    assert_eq!((split.segment, split.partial, split.tasks.len()), (2, false, 2));
}

#[test]
fn a_pipeline_that_ends_with_a_call_merges_its_results() {
    let text = "- step: a\n  tool:\n  - {name: pull, kind: noop}\n  \
                - {name: run, kind: playbook, path: p, return_result: true}\n";
    let mut run = Run::started(text);
    run.complete("a", answer("pull", json!({"n": 1, "v": 1})));
    run.script("child a {\"v\": 7}").unwrap();
    assert_eq!(run.state.status(), Status::Completed);
    let expected = json!({"n": 1, "v": 7, "pull": {"n": 1, "v": 1}, "run": {"v": 7}});
    assert_eq!(run.result("a"), expected);
    // A call alone in front, sent off without waiting, needs no worker at all.
    let text = "- step: a\n  tool:\n  - {name: one, kind: playbook, path: p}\n  \
                - {name: two, kind: playbook, path: q}\n";
    let run = Run::started(text);
    assert_eq!(run.state.status(), Status::Completed);
    assert_eq!(run.result("a")["one"]["status"], json!("started"));
    assert_eq!(run.result("a")["two"]["path"], json!("q"));
}

#[test]
fn a_failed_call_fails_the_step_unless_a_rule_accepts_it() {
    let mut run = Run::started(AROUND);
    run.complete("a", answer("pull", json!({"n": 1})));
    run.script("childfails a").unwrap();
    assert_eq!(run.state.status(), Status::Failed);
    assert_eq!(run.state.summary().error.unwrap(), "child_failed: it broke");
    let exits = |event: &&Event| matches!(event.fact, Fact::StepExited { .. });
    assert_eq!(run.log.iter().filter(exits).count(), 1);
    let text = "- step: a\n  tool:\n  \
                - {name: run, kind: playbook, path: p, return_result: true, spec: {policy: {rules: \
                   [{when: \"{{ output.status == 'error' }}\", then: {do: continue, \
                   set: {ctx.why: '{{ output.error.kind }}'}}}]}}}\n  \
                - {name: store, kind: noop}\n";
    let mut run = Run::started(text);
    run.script("childfails a").unwrap();
    let issued = open_issued(&run);
    let scope = issued.scope.as_deref().unwrap();
    assert_eq!(scope.earlier["0"]["error"]["kind"], json!("child_failed"));
    assert!(json!(scope.split)["tasks"][0]["call"]["failed"].as_bool().unwrap());
    let updated = run.log.iter().find_map(|event| match &event.fact {
        Fact::ContextUpdated { values, .. } => Some(json!(values)),
        _ => None,
    });
    assert_eq!(updated, Some(json!({"why": "child_failed"})));
}

#[test]
fn a_call_that_cannot_be_rendered_fails_the_step() {
    let text = "- step: a\n  tool:\n  - {name: pull, kind: noop}\n  \
                - {name: run, kind: playbook, path: '{{ 1 / (pull.n - 1) }}'}\n";
    let mut run = Run::started(text);
    run.complete("a", answer("pull", json!({"n": 1})));
    assert_eq!(run.state.status(), Status::Failed);
    let error = run.state.summary().error.unwrap();
    assert!(error.starts_with("template_error: task 'run', path"), "{error}");
}

#[test]
fn a_failed_segment_fails_the_step() {
    for before in [false, true] {
        let mut run = Run::started(AROUND);
        if before {
            run.complete("a", answer("pull", json!({"n": 1})));
            run.script("child a {\"v\": 7}").unwrap();
        }
        run.fail("a");
        assert_eq!(run.state.status(), Status::Failed, "{before}");
    }
}

#[test]
fn a_break_before_the_call_ends_the_pipeline() {
    let mut run = Run::started(AROUND);
    let broke = json!({"break": true, "tasks": [{"name": "pull", "data": {"n": 1}}]});
    run.complete("a", broke);
    assert_eq!(run.open(), ["b"], "no playbook is called");
    assert_eq!(run.result("a"), json!({"n": 1}));
}

#[test]
fn a_break_of_the_call_ends_the_pipeline() {
    let text = "- step: a\n  tool:\n  \
                - {name: run, kind: playbook, path: p, return_result: true, spec: {policy: {rules: \
                   [{when: '{{ output.v > 5 }}', then: {do: break}}]}}}\n  \
                - {name: store, kind: noop}\n";
    let mut run = Run::started(text);
    run.script("child a {\"v\": 7}").unwrap();
    assert_eq!(run.state.status(), Status::Completed);
    assert_eq!(run.result("a"), json!({"v": 7}));
}

#[test]
fn a_call_is_retried_by_its_rules() {
    check(
        "- step: a\n  tool:\n  \
         - {name: run, kind: playbook, path: 'p{{ _attempt }}', return_result: true, \
            spec: {policy: {rules: [{when: \"{{ output.status == 'error' }}\", \
            then: {do: retry, attempts: 2, delay: 3}}]}}}\n  \
         - {name: store, kind: noop}\n",
        "start; childfails a; wake a; childfails a",
        "\
start
  playbook_started
  step.enter a #1
  command.issued a attempt 1
  command.claimed a by control-plane
  command.parked a on a child
childfails a
  command.failed a child_failed: it broke
  command.issued a attempt 2
  command.claimed a by control-plane
  command.parked a until the next try
wake a
  command.parked a on a child
childfails a
  command.failed a child_failed: it broke
  step.exit a failed: child_failed: it broke -> nowhere
  playbook.failed at a child_failed: it broke
",
    );
}

#[test]
fn a_cancelled_execution_cancels_the_called_one() {
    let mut run = Run::started(AROUND);
    run.complete("a", answer("pull", json!({"n": 1})));
    let child = run.child("a");
    let asked = run.decide(Input::Cancel(Cancel::default())).unwrap().timers;
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].target, child);
    assert!(matches!(asked[0].kind, TimerKind::CancelChild { .. }));
}

#[test]
fn a_step_timeout_ends_the_call() {
    let text = AROUND.replace("- step: a\n", "- step: a\n  spec: {timeout: 30}\n");
    let mut run = Run::started(&text);
    run.complete("a", answer("pull", json!({"n": 1})));
    let from = run.log.len();
    run.timeout("a");
    assert_eq!(run.state.status(), Status::Failed);
    let asked = due(&run, run.log[from..].to_vec());
    assert!(asked.iter().any(|due| matches!(due, TimerKind::CancelChild { .. })), "{asked:?}");
}

#[test]
fn a_failing_execution_starts_no_further_segment() {
    let text = format!(
        "- {{step: s, tool: {{kind: noop}}, next: {{spec: {{mode: inclusive}}, \
         arcs: [{{step: a}}, {{step: z}}]}}}}\n{AROUND}- {{step: z, tool: {{kind: noop}}}}\n"
    );
    let mut run = Run::started(&text);
    run.complete("s", json!({}));
    run.claim("a", "w");
    run.fail("z");
    assert_eq!(run.state.status(), Status::Running);
    run.complete("a", answer("pull", json!({"n": 1})));
    assert_eq!(run.state.status(), Status::Failed);
    assert!(!run.log.iter().any(|event| matches!(event.fact, Fact::CommandParked { .. })));
}

#[test]
fn a_retried_row_of_a_cursor_restarts_at_its_first_segment() {
    let text = "- step: a\n  \
         loop: {cursor: {kind: postgres, auth: pg, claim: x}, iterator: row, spec: {mode: cursor, \
         frame: {max_rows: 2, max_attempts: 2}}}\n  tool:\n  - {name: pull, kind: noop}\n  \
         - {name: run, kind: playbook, path: p, return_result: true, input: {i: '{{ row }}'}}\n";
    let mut run = Run::started(text);
    run.complete("a:claim", json!({"rows": [5]}));
    run.complete("a:0", answer("pull", json!({"n": 1})));
    run.script("childfails a:0").unwrap();
    let split = open_issued(&run).split().unwrap().clone();
    assert_eq!((split.segment, split.attempt, split.tasks.len()), (0, 2, 0));
    run.complete("a:0", answer("pull", json!({"n": 2})));
    run.script("child a:0 {\"v\": 1}").unwrap();
    run.complete("a:claim", json!({"rows": []}));
    assert_eq!(run.state.status(), Status::Completed);
    assert_eq!(run.result("a")["results"][0]["pull"], json!({"n": 2}));
}

#[test]
fn a_lost_worker_repeats_its_segment_only() {
    let mut run = Run::started(AROUND);
    run.complete("a", answer("pull", json!({"n": 1})));
    run.script("child a {\"v\": 7}").unwrap();
    let before = open_issued(&run);
    run.claim("a", "w");
    run.expire("a");
    let again = open_issued(&run);
    assert_eq!(again.attempt, 2);
    assert_eq!(again.scope, before.scope);
}

const LOOPED: &str = "- step: a\n  \
     loop: {in: [1, 2, 3], iterator: i, spec: {mode: parallel, max_in_flight: 2}}\n  tool:\n  \
     - {name: pull, kind: noop}\n  \
     - {name: run, kind: playbook, path: p, return_result: true, input: {i: '{{ i }}'}}\n  \
     - {name: store, kind: noop}\n  next: {arcs: [{step: b}]}\n\
     - {step: b, tool: {kind: noop}}\n";

#[test]
fn each_item_of_a_loop_is_split_independently() {
    let mut run = Run::started(LOOPED);
    assert_eq!(run.open(), ["a", "a"]);
    let events = run.complete("a:1", answer("pull", json!({"n": 1})));
    let asked = due(&run, events);
    assert!(
        matches!(&asked[..], [TimerKind::StartChild { payload, .. }] if payload["i"] == json!(2)),
        "{asked:?}"
    );
    // The item still counts as one that runs.
    assert_eq!(run.open(), ["a", "a"]);
    run.complete("a:0", answer("pull", json!({"n": 0})));
    for item in [1, 0] {
        run.script(&format!("child a:{item} {{\"v\": {item}}}")).unwrap();
    }
    for item in [0, 1] {
        run.complete(&format!("a:{item}"), json!({"done": item, "run": {}}));
    }
    run.complete("a:2", answer("pull", json!({"n": 2})));
    run.script("child a:2 {\"v\": 2}").unwrap();
    run.complete("a:2", json!({"done": 2, "run": {}}));
    assert_eq!(run.open(), ["b"]);
    let result = run.result("a");
    let done: Vec<&Value> = (0..3).map(|item| &result["results"][item]["done"]).collect();
    assert_eq!(done, [&json!(0), &json!(1), &json!(2)]);
    assert_eq!(result["stats"], json!({"total": 3, "success": 3, "failed": 0, "skipped": 0}));
}

#[test]
fn a_running_item_ends_after_another_item_failed() {
    let mut run = Run::started(LOOPED);
    run.complete("a:0", answer("pull", json!({})));
    run.script("childfails a:0").unwrap();
    assert_eq!(run.open(), Vec::<String>::new(), "what nobody claimed never begins");
    let mut run = Run::started(LOOPED);
    run.complete("a:0", answer("pull", json!({})));
    run.complete("a:1", answer("pull", json!({})));
    run.script("child a:1 {}").unwrap();
    run.script("childfails a:0").unwrap();
    assert_eq!(run.open(), ["a"], "its last segment is pending, and the item has begun");
    run.complete("a:1", json!({"run": {}}));
    assert_eq!(run.state.status(), Status::Failed);
}

fn blob(run: &mut Run, digest: &str, value: &Value) -> Arc<BlobRef> {
    let bytes = value.to_string().into_bytes();
    let reference = BlobRef {
        digest: Arc::from(digest),
        bytes: bytes.len() as u64,
        media_type: Arc::from("application/json"),
    };
    run.blobs.insert(digest.to_owned(), bytes);
    Arc::new(reference)
}

#[test]
fn large_results_stay_outside_the_event_log() {
    for limits in [ValueLimits::default(), ValueLimits::NONE] {
        let mut run = Run::within(playbook(AROUND), limits);
        run.input(super::harness::start()).unwrap();
        let whole = answer("pull", json!({"n": 1, "text": "x".repeat(100)}));
        let reference = blob(&mut run, "one", &whole);
        let complete = Complete {
            command: run.command("a"),
            data: Some(json!({"break": false})),
            reference: Some(reference.clone()),
            is_final: true,
            ctx: Map::new(),
            step: Map::new(),
            run: None,
        };
        let events = run.input(Input::Complete(complete)).unwrap();
        let asked = due(&run, events);
        assert!(
            matches!(&asked[..], [TimerKind::StartChild { payload, .. }] if payload["n"] == json!(1)),
            "{asked:?}"
        );
        let child = blob(&mut run, "two", &json!({"v": 7, "text": "y"}));
        let answered = Answer {
            command: run.command("a"),
            from: AnswerSource::Child(run.child("a")),
            outcome: Ok(json!({})),
            reference: Some(child.clone()),
            actor: None,
        };
        run.input(Input::Answer(Box::new(answered))).unwrap();
        let scope = open_issued(&run).scope.clone().unwrap();
        assert!(scope.earlier.is_empty());
        let references: Vec<_> = scope.blobs.iter().map(|blob| blob.reference.clone()).collect();
        assert_eq!(references, [reference, child]);
        let ctx = run.log.iter().find_map(|event| match &event.fact {
            Fact::ContextUpdated { values, .. } => Some(json!(values)),
            _ => None,
        });
        assert_eq!(ctx, Some(json!({"seen": 7})), "the whole result is read for `set`");
    }
}

#[test]
fn large_results_are_merged_by_a_worker() {
    let text = "- step: a\n  tool:\n  - {name: pull, kind: noop}\n  \
                - {name: run, kind: playbook, path: p, return_result: true}\n";
    let mut run = Run::started(text);
    run.complete("a", answer("pull", json!({"text": "x".repeat(70_000)})));
    run.script("child a {\"v\": 7}").unwrap();
    let issued = open_issued(&run);
    assert_eq!(issued.config["tasks"], json!([]));
    assert_eq!(issued.split().unwrap().segment, 2);
    run.complete("a", json!({"merged": true}));
    assert_eq!(run.result("a"), json!({"merged": true}));
}

#[test]
fn a_result_without_tasks_fails_the_step() {
    let mut run = Run::started(AROUND);
    run.complete("a", json!({"n": 1}));
    let error = run.state.summary().error.unwrap();
    assert!(error.contains("upgrade the worker"), "{error}");
    for (limits, data) in
        [(ValueLimits::default(), json!({"x": 1})), (ValueLimits::NONE, json!([1]))]
    {
        let mut run = Run::within(playbook(AROUND), limits);
        run.input(super::harness::start()).unwrap();
        run.complete("a", answer("pull", json!({"n": 1})));
        run.script("child a {\"v\": 7}").unwrap();
        run.complete("a", data);
        assert!(run.state.summary().error.unwrap().contains("upgrade the worker"));
    }
}

/// Returns a run whose call has ended.
fn after_call() -> Run {
    let mut run = Run::started(AROUND);
    run.complete("a", answer("pull", json!({"n": 1})));
    run.script("child a {\"v\": 7}").unwrap();
    run
}

#[test]
fn a_fork_continues_with_the_open_segment() {
    let mut run = after_call();
    run.claim("a", "w");
    run.fail("a");
    let cut = crate::fork::seq_before_failure(&run.log).unwrap();
    let fork = forked(AROUND, &run, cut.0, json!({}));
    let issued = open_issued(&fork);
    assert_eq!(issued.config["tasks"][0]["name"], json!("store"));
    assert_eq!(issued.scope.as_deref().unwrap().earlier["1"], json!({"v": 7}));
}

#[test]
fn a_fork_at_any_event_has_one_open_command() {
    let run = after_call();
    for cut in 0..=run.log.last().unwrap().seq.0 {
        let mut fork = forked(AROUND, &run, cut, json!({}));
        assert_eq!(fork.open(), ["a"], "cut at {cut}");
        // It comes to the same end.
        let segment = |fork: &Run| open_issued(fork).split().unwrap().segment;
        if segment(&fork) == 0 {
            fork.complete("a", answer("pull", json!({"n": 1})));
        }
        if segment(&fork) == 1 {
            fork.script("child a {\"v\": 7}").unwrap();
        }
        assert_eq!(open_issued(&fork).scope, open_issued(&run).scope, "cut at {cut}");
    }
}

#[test]
fn a_fork_to_another_version_restarts_the_step_run() {
    let run = after_call();
    let mut fork = Run::new(playbook("- {step: a, tool: {kind: noop, n: 2}}\n"));
    fork.state = Execution::new(noetl_model::ExecutionId::new(2));
    for seq in [run.log.len() as u64, 3] {
        fork.state = Execution::new(noetl_model::ExecutionId::new(2));
        fork.log.clear();
        let input = Fork {
            log: run.log.clone().into(),
            cut: noetl_model::Seq(seq),
            workload: Map::new(),
            trace: None,
            version: Some((noetl_model::CatalogId::new(2), 2)),
            actor: None,
        };
        fork.input(Input::Fork(Box::new(input))).unwrap();
        assert_eq!(open_issued(&fork).config["n"], json!(2));
    }
}

#[test]
fn replaying_a_log_makes_the_same_decisions() {
    let run = after_call();
    let env = Arc::default();
    assert_eq!(crate::first_divergence(&run.playbook, &run.log, &env, |_| None), None);
    let other = playbook(&AROUND.replace("name: pull, kind: noop", "name: pull, kind: noop, x: 1"));
    assert!(crate::first_divergence(&other, &run.log, &env, |_| None).is_some());
}

#[test]
fn a_final_step_runs_all_its_segments_after_a_failure() {
    let last = "- step: last\n  tool:\n  - {name: pull, kind: noop}\n  \
                - {name: run, kind: playbook, path: p, return_result: true}\n  \
                - {name: store, kind: noop}\n";
    let mut run = with_final_step("- {step: a, tool: {kind: noop}}\n", last);
    run.fail("a");
    run.complete("last", answer("pull", json!({"n": 1})));
    run.script("child last {\"v\": 7}").unwrap();
    assert_eq!(run.open(), ["last"]);
    run.complete("last", json!({"n": 1, "v": 7, "pull": {"n": 1}, "run": {"v": 7}}));
    assert_eq!(run.state.status(), Status::Failed);
    assert_eq!(run.state.summary().error.unwrap(), "unknown: it broke");
}

#[test]
fn a_long_loop_of_calls_without_waiting_uses_little_stack() {
    let text = "- step: a\n  loop: {in: '{{ range(5000) | list }}', iterator: n}\n  tool:\n  \
                - {name: one, kind: playbook, path: p}\n  - {name: two, kind: playbook, path: q}\n";
    let run = std::thread::Builder::new().stack_size(1 << 20);
    let run = run.spawn(move || Run::started(text).state.status()).unwrap();
    assert_eq!(run.join().unwrap(), Status::Completed);
}
