//! Executions that begin with the past of another.

use std::sync::Arc;

use noetl_model::{CatalogId, CommandId, ExecutionId, Fact, Map, Seq, Value};
use serde_json::json;

use super::harness::{Run, playbook, start, timers_of};
use crate::fork::{first_incompatibility, seq_before_failure, seq_before_step};
use crate::{Complete, Execution, Fork, Input, Status, TimerKind, WaitKind, pending_waits};

const LINE: &str = "- {step: a, tool: {kind: noop}, next: {arcs: [{step: b}]}}\n\
     - {step: b, tool: {kind: noop, seen: '{{ a.v }}-{{ workload.n }}'}, next: {arcs: [{step: c}]}}\n\
     - {step: c, tool: {kind: noop, seen: '{{ b.v }}-{{ workload.n }}'}}\n";

/// Forks `of` at `cut` with the same playbook.
pub(super) fn forked(workflow: &str, of: &Run, cut: u64, workload: Value) -> Run {
    let mut fork = Run::new(playbook(workflow));
    fork.state = Execution::new(ExecutionId::new(2));
    let workload = workload.as_object().cloned().unwrap_or_default();
    let log = of.log.clone().into();
    let input = Fork { log, cut: Seq(cut), workload, trace: None, version: None, actor: None };
    fork.input(Input::Fork(Box::new(input))).unwrap();
    fork
}

fn whole(run: &Run) -> u64 {
    run.log.last().unwrap().seq.0
}

fn config(run: &Run, step: &str) -> Value {
    run.state.open_command(run.command(step)).unwrap().issued.config["seen"].clone()
}

#[test]
fn a_fork_reissues_commands_in_flight() {
    let mut run = Run::started(LINE);
    run.claim("a", "w");
    run.complete("a", json!({"v": 1}));
    run.claim("b", "w");
    let fork = forked(LINE, &run, whole(&run), json!({}));
    assert_eq!(fork.open(), ["b"]);
    assert_eq!(config(&fork, "b"), json!("1-3"));
    assert!(fork.state.open_command(fork.command("b")).unwrap().worker.is_none());
    let Fact::PlaybookStarted(started) = &fork.log[0].fact else { panic!("it began") };
    let from = started.forked.as_ref().unwrap();
    assert_eq!((from.execution, from.seq), (ExecutionId::new(1), Seq(whole(&run))));
}

#[test]
fn a_fork_and_its_origin_are_independent() {
    let mut run = Run::started(LINE);
    run.complete("a", json!({"v": 1}));
    let mut fork = forked(LINE, &run, whole(&run), json!({"n": 9}));
    assert_eq!(config(&fork, "b"), json!("1-3"), "what was rendered stays");
    fork.complete("b", json!({"v": 2}));
    assert_eq!(config(&fork, "c"), json!("2-9"), "what comes is rendered with the new workload");
    fork.complete("c", json!(null));
    assert_eq!(fork.state.status(), Status::Completed);
    assert_eq!(run.state.status(), Status::Running);
}

#[test]
fn a_cut_within_a_decision_moves_back_to_a_quiescent_event() {
    let mut run = Run::started(LINE);
    run.complete("a", json!({"v": 1}));
    run.complete("b", json!({"v": 2}));
    let last = whole(&run);
    for cut in 0..=last {
        let fork = forked(LINE, &run, cut, json!({}));
        assert_eq!(fork.open().len(), 1, "cut at {cut}");
        assert_eq!(fork.state.status(), Status::Running);
        let at = fork.state.started().unwrap().forked.clone().unwrap().seq;
        assert!(at.0 <= cut);
    }
    let done = run.log.iter().find(|event| matches!(event.fact, Fact::CallDone { .. })).unwrap();
    let fork = forked(LINE, &run, done.seq.0, json!({}));
    assert_eq!(fork.open(), ["b"], "an answer that was given decides the step");
    assert_eq!(fork.step_runs("a"), 1);
}

#[test]
fn a_fork_from_before_a_failure_retries_the_step() {
    let mut run = Run::started(LINE);
    run.complete("a", json!({"v": 1}));
    run.fail("b");
    assert_eq!(run.state.status(), Status::Failed);
    let cut = seq_before_failure(&run.log).unwrap();
    let mut fork = forked(LINE, &run, cut.0, json!({}));
    assert_eq!(fork.open(), ["b"]);
    fork.complete("b", json!({"v": 2}));
    fork.complete("c", json!(5));
    assert_eq!(fork.state.status(), Status::Completed);
}

#[test]
fn a_fork_of_a_cancelled_execution_continues_from_the_cut() {
    let mut run = Run::started(LINE);
    run.complete("a", json!({"v": 1}));
    run.script("cancel").unwrap();
    let cut = seq_before_failure(&run.log).unwrap();
    assert_eq!(forked(LINE, &run, cut.0, json!({})).open(), ["b"]);
}

#[test]
fn a_fork_can_return_to_a_step_by_name() {
    let mut run = Run::started(LINE);
    run.complete("a", json!({"v": 1}));
    run.complete("b", json!({"v": 2}));
    run.complete("c", json!({"v": 3}));
    let cut = seq_before_step(&run.log, "b").unwrap();
    assert_eq!(forked(LINE, &run, cut.0, json!({})).open(), ["b"]);
    assert_eq!(seq_before_step(&run.log, "nowhere"), None);
}

const LOOP: &str = "- {step: a, loop: {in: [1, 2, 3], iterator: x, spec: {mode: parallel, \
     max_in_flight: 2}}, tool: {kind: noop, seen: '{{ x }}'}, next: {arcs: [{step: b}]}}\n\
     - {step: b, tool: {kind: noop}}\n";

#[test]
fn a_forked_loop_retains_results_of_its_items() {
    let mut run = Run::started(LOOP);
    run.complete("a:0", json!("zero"));
    for cut in 1..=whole(&run) {
        let mut fork = forked(LOOP, &run, cut, json!({}));
        assert_eq!(fork.state.status(), Status::Running, "cut at {cut}");
        while !fork.open().contains(&"b".to_owned()) {
            fork.complete("a", json!("again"));
        }
        let results = fork.result("a")["results"].as_array().unwrap().len();
        assert_eq!(results, 3, "cut at {cut}: no item is lost and none twice");
        fork.complete("b", json!(null));
        assert_eq!(fork.state.status(), Status::Completed);
    }
    let mut fork = forked(LOOP, &run, whole(&run), json!({}));
    fork.complete("a:1", json!(1));
    fork.complete("a:2", json!(2));
    assert_eq!(fork.result("a")["results"], json!(["zero", 1, 2]));
}

#[test]
fn a_fork_retries_the_failed_items_of_a_loop() {
    let mut run = Run::started(LOOP);
    run.claim("a:0", "w");
    run.claim("a:1", "w");
    run.fail("a:0");
    run.complete("a:1", json!("one"));
    assert_eq!(run.state.status(), Status::Failed);
    let cut = seq_before_failure(&run.log).unwrap();
    let mut fork = forked(LOOP, &run, cut.0, json!({}));
    for item in ["a:0", "a:1", "a:2"] {
        fork.complete(item, json!(item));
    }
    fork.complete("b", json!(null));
    assert_eq!(fork.state.status(), Status::Completed);
}

const AROUND: &str = "- {step: a, tool: {kind: noop}, set: {ctx.i: '{{ (ctx.i | default(0)) + 1 }}'}, \
     next: {arcs: [{step: a, when: '{{ ctx.i < 3 }}'}, {step: b, when: '{{ ctx.i >= 3 }}'}]}}\n\
     - {step: b, tool: {kind: noop}}\n";

#[test]
fn a_fork_can_cut_a_cycle_at_any_event() {
    let mut run = Run::started(AROUND);
    run.complete("a", json!(null));
    run.complete("a", json!(null));
    run.complete("a", json!(null));
    for cut in 1..=whole(&run) {
        let mut fork = forked(AROUND, &run, cut, json!({}));
        while fork.open() == ["a"] {
            fork.complete("a", json!(null));
        }
        assert_eq!(fork.step_runs("a"), 3, "cut at {cut}");
        fork.complete("b", json!(null));
        assert_eq!(fork.state.status(), Status::Completed);
    }
}

const BESIDE: &str = "- {step: s, tool: {kind: noop}, next: {spec: {mode: inclusive}, arcs: \
     [{step: a}, {step: p}]}}\n\
     - {step: a, tool: {kind: noop}, set: {ctx.i: '{{ (ctx.i | default(0)) + 1 }}'}, \
     next: {arcs: [{step: a, when: '{{ ctx.i < 3 }}'}]}}\n\
     - {step: p, tool: {kind: noop}}\n";

#[test]
fn a_fork_takes_a_back_arc_parallel_to_another_branch() {
    let mut run = Run::started(BESIDE);
    run.complete("s", json!(null));
    run.complete("a", json!(null));
    for cut in 1..=whole(&run) {
        let mut fork = forked(BESIDE, &run, cut, json!({}));
        if fork.open() == ["s"] {
            fork.complete("s", json!(null));
        }
        while fork.open().contains(&"a".to_owned()) {
            fork.complete("a", json!(null));
        }
        assert_eq!(fork.step_runs("a"), 3, "cut at {cut}");
        assert_eq!(fork.open(), ["p"], "cut at {cut}");
    }
}

#[test]
fn a_fork_of_a_failing_execution_starts_before_the_failure() {
    let mut run = Run::started(BESIDE);
    run.complete("s", json!(null));
    run.claim("p", "w");
    let before = whole(&run);
    run.fail("a");
    run.complete("p", json!(1));
    assert_eq!(run.state.status(), Status::Failed);
    let fork = forked(BESIDE, &run, whole(&run), json!({}));
    assert_eq!(fork.open(), ["a", "p"], "from before the failure");
    assert_eq!(fork.state.started().unwrap().forked.as_ref().unwrap().seq, Seq(before));
}

const UNRENDERED: &str = "- {step: a, loop: {in: [2, 1], iterator: x, spec: {mode: sequential}}, \
     tool: {kind: noop, seen: '{{ 1 / (x - 1) }}'}}\n";

#[test]
fn a_fork_renders_an_item_that_failed_to_render() {
    let mut run = Run::started(UNRENDERED);
    run.complete("a:0", json!(null));
    assert_eq!(run.state.status(), Status::Failed);
    let cut = seq_before_failure(&run.log).unwrap();
    let fork = forked(UNRENDERED, &run, cut.0, json!({}));
    assert_eq!(fork.state.status(), Status::Failed, "nothing else stands for it");
}

#[test]
fn values_set_by_a_pipeline_stay_with_its_result_in_a_fork() {
    let line = "- {step: a, tool: {kind: noop}, next: {arcs: [{step: b}]}}\n\
         - {step: b, tool: {kind: noop, seen: '{{ ctx.t }}'}}\n";
    let mut run = Run::started(line);
    let ctx = Map::from_iter([("t".to_owned(), json!("set"))]);
    let command = run.command("a");
    let data = Some(json!(1));
    let complete = Complete {
        command,
        data,
        reference: None,
        is_final: true,
        ctx,
        step: Map::new(),
        run: None,
    };
    run.input(Input::Complete(complete)).unwrap();
    for cut in 1..=whole(&run) {
        let fork = forked(line, &run, cut, json!({}));
        match fork.open()[0].as_str() {
            "a" => {
                assert!(fork.log.iter().all(|event| !matches!(event.fact, Fact::CallDone { .. })))
            }
            _ => assert_eq!(config(&fork, "b"), json!("set"), "cut at {cut}"),
        }
    }
}

const CALL: &str = "- {step: a, tool: {kind: playbook, path: other/one, return_step: end}, \
     next: {arcs: [{step: b}]}}\n- {step: b, tool: {kind: wait, seconds: 5}}\n";

fn due(run: &Run) -> Vec<TimerKind> {
    timers_of(&run.state, &run.log).into_iter().map(|due| due.kind).collect()
}

#[test]
fn a_fork_restarts_open_children_only() {
    let mut run = Run::started(CALL);
    let fork = forked(CALL, &run, whole(&run), json!({}));
    let asked = due(&fork);
    let [TimerKind::StartChild { child, parent, .. }] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    assert_eq!((child.execution, *parent), (fork.child("a"), ExecutionId::new(2)));
    run.script("child a {\"v\": 7}").unwrap();
    let fork = forked(CALL, &run, whole(&run), json!({}));
    assert_eq!(fork.open(), ["b"]);
    assert!(matches!(due(&fork).as_slice(), [TimerKind::Wake { .. }]), "only the wait is due");
}

#[test]
fn a_forked_execution_waits_for_outstanding_work() {
    let mut run = Run::started(LINE);
    let waits = |run: &Run| pending_waits(&run.state).remove(0).awaited;
    assert_eq!(waits(&run), WaitKind::Worker { tool: Arc::from("noop"), attempt: 1 });
    run.claim("a", "w");
    let worker = Arc::from("w");
    assert_eq!(waits(&run), WaitKind::Report { worker, began: false, stopping: false });
    let wait = Run::started("- {step: a, tool: {kind: wait, seconds: 5}}\n");
    let until = wait.awaited("a");
    assert_eq!(waits(&wait), WaitKind::Time { until, retries: false });
    let since = pending_waits(&wait.state)[0].since.unwrap();
    assert_eq!(until.since(since).as_secs(), 5);
    let approval = Run::started("- {step: a, tool: {kind: approval}}\n");
    assert!(matches!(waits(&approval), WaitKind::Answer { .. }));
    let call = Run::started(CALL);
    let execution = call.child("a");
    assert_eq!(waits(&call), WaitKind::Child { execution, until: None });
    let repeat = Run::started(LOOP);
    let items = WaitKind::Items { total: Some(3), ended: 0, open: 2, claims: 0 };
    assert_eq!(pending_waits(&repeat.state).pop().unwrap().awaited, items);
    run.script("cancel").unwrap();
    assert_eq!(pending_waits(&run.state), []);
}

#[test]
fn a_second_start_of_a_fork_is_rejected() {
    let run = Run::started(LINE);
    let mut fork = forked(LINE, &run, whole(&run), json!({}));
    let input = Fork {
        log: run.log.clone().into(),
        cut: Seq(9),
        workload: Map::new(),
        trace: None,
        version: None,
        actor: None,
    };
    let again = fork.input(Input::Fork(Box::new(input)));
    assert_eq!(again, Err(crate::Rejection::AlreadyStarted));
    assert_eq!(fork.input(start()), Err(crate::Rejection::AlreadyStarted));
}

/// Forks `of` at `cut` with another version of the playbook, or returns why it is incompatible.
fn onto(workflow: &str, of: &Run, cut: u64) -> Result<Run, String> {
    let mut fork = Run::new(playbook(workflow));
    if let Some(misfit) = first_incompatibility(&fork.playbook, &of.log, Seq(cut)) {
        return Err(misfit.to_string());
    }
    fork.state = Execution::new(ExecutionId::new(2));
    let (log, workload, trace) = (of.log.clone().into(), Map::new(), None);
    let version = Some((CatalogId::new(7), 2));
    let input = Fork { log, cut: Seq(cut), workload, trace, version, actor: None };
    fork.input(Input::Fork(Box::new(input))).unwrap();
    Ok(fork)
}

#[test]
fn a_fork_continues_work_in_flight_with_the_other_version() {
    let mut run = Run::started(LINE);
    run.complete("a", json!({"v": 1}));
    // A step that is over may be gone, and another may follow.
    let mended = "- {step: b, tool: {kind: noop, seen: 'mended {{ a.v }}'}, next: {arcs: [{step: d}]}}\n\
         - {step: d, tool: {kind: noop, seen: '{{ b.v }}'}}\n";
    let mut fork = onto(mended, &run, whole(&run)).unwrap();
    assert_eq!(config(&fork, "b"), json!("mended 1"));
    let Fact::PlaybookStarted(started) = &fork.log[0].fact else { panic!("it began") };
    assert_eq!((started.catalog, started.version), (CatalogId::new(7), 2));
    fork.complete("b", json!({"v": 2}));
    assert_eq!(config(&fork, "d"), json!(2));
    fork.complete("d", json!(null));
    assert_eq!(fork.state.status(), Status::Completed);
}

#[test]
fn a_running_step_must_exist_in_the_other_version() {
    let mut run = Run::started(LINE);
    run.complete("a", json!({"v": 1}));
    let without = "- {step: a, tool: {kind: noop}, next: {arcs: [{step: c}]}}\n\
         - {step: c, tool: {kind: noop}}\n";
    let wrong = onto(without, &run, whole(&run)).map(|_| ()).unwrap_err();
    let place = whole(&run);
    assert_eq!(
        wrong,
        format!(
            "at event {place} of the log, step 'b' is running, and the version has no such step"
        )
    );
    // Before that, it fits.
    assert_eq!(onto(without, &run, 3).unwrap().open(), ["a"]);
}

#[test]
fn waiting_tokens_need_their_step_in_the_other_version() {
    let joins = "- {step: a, next: {spec: {mode: inclusive}, arcs: [{step: b}, {step: c}]}}\n\
         - {step: b, tool: {kind: noop}, next: {arcs: [{step: end}]}}\n\
         - {step: c, tool: {kind: noop}, next: {arcs: [{step: end}]}}\n\
         - {step: end, tool: {kind: noop}}\n";
    let mut run = Run::started(joins);
    run.complete("b", json!(1));
    let without = joins.replace("end", "finish");
    let wrong = onto(&without, &run, whole(&run)).map(|_| ()).unwrap_err();
    assert!(wrong.contains("tokens wait at step 'end'"), "{wrong}");
}

const ITEMS: &str = "- {step: a, loop: {in: [1, 2, 3], iterator: x, spec: {mode: parallel, \
     max_in_flight: 2}}, tool: {kind: noop, seen: '{{ iter.x }}'}}\n";

#[test]
fn running_items_are_reissued_with_the_settings_of_the_other_version() {
    let mut run = Run::started(ITEMS);
    let (first, _) = run.state.open_commands().next().unwrap();
    run.input(Input::Complete(complete(first))).unwrap();
    let mended = ITEMS.replace("'{{ iter.x }}'", "'mended {{ iter.x }}'");
    let mut fork = onto(&mended, &run, whole(&run)).unwrap();
    let seen: Vec<Value> =
        fork.state.open_commands().map(|(_, open)| open.issued.config["seen"].clone()).collect();
    assert_eq!(seen, [json!("mended 2"), json!("mended 3")]);
    finish(&mut fork);
    assert_eq!(fork.state.status(), Status::Completed);
}

#[test]
fn a_running_loop_keeps_its_kind_in_a_fork() {
    let run = Run::started(ITEMS);
    let plain = "- {step: a, tool: {kind: noop}}\n";
    let wrong = onto(plain, &run, whole(&run)).map(|_| ()).unwrap_err();
    assert!(wrong.contains("the step is not a loop in the version"), "{wrong}");
    // What has one command may become a loop, until its tool has answered.
    let mut run = Run::started(plain);
    let fork = onto(ITEMS, &run, whole(&run)).unwrap();
    assert_eq!(fork.state.open_commands().count(), 2);
    let (command, _) = run.state.open_commands().next().unwrap();
    let answered = Complete { is_final: false, ..complete(command) };
    run.input(Input::Complete(answered)).unwrap();
    let wrong = onto(ITEMS, &run, whole(&run)).map(|_| ()).unwrap_err();
    assert!(wrong.contains("has returned, and the step is a loop in the version"), "{wrong}");
}

#[test]
fn a_compatible_version_completes_from_every_cut() {
    let mut run = Run::started(LINE);
    run.complete("a", json!({"v": 1}));
    run.complete("b", json!({"v": 2}));
    for cut in 1..=whole(&run) {
        let mut fork = onto(LINE, &run, cut).unwrap();
        finish(&mut fork);
        assert_eq!(fork.state.status(), Status::Completed, "cut at {cut}");
    }
}

fn complete(command: CommandId) -> Complete {
    let (data, ctx, step) = (Some(json!({"v": 0})), Map::new(), Map::new());
    Complete { command, data, reference: None, is_final: true, ctx, step, run: None }
}

/// Completes whatever is handed out until nothing is.
fn finish(run: &mut Run) {
    loop {
        let next = run.state.open_commands().next().map(|(command, _)| command);
        let Some(command) = next else { return };
        run.input(Input::Complete(complete(command))).unwrap();
    }
}
