//! Tests of the spans of an execution's trace.

use std::sync::Arc;

use noetl_model::trace::{Attribute, Span, SpanId};
use noetl_model::{Event, ExecutionId, Fact, Map, Seq, TraceContext};

use super::harness::{Run, TRACE, playbook, start, timers_of};
use crate::{Cancel, Claim, Complete, Execution, Fork, Input};

const TWO: &str = "\
- {step: a, tool: {kind: noop}, next: {arcs: [{step: b}]}}
- {step: b, tool: {kind: noop}}";

/// Returns the spans that an input ends.
fn spans(run: &mut Run, input: Input) -> Vec<Span> {
    run.decide(input).unwrap().spans
}

fn complete(run: &Run) -> Input {
    let (command, _) = run.state.open_commands().next().expect("an open command");
    Input::Complete(Complete {
        command,
        data: Some(7.into()),
        reference: None,
        is_final: true,
        ctx: Map::new(),
        step: Map::new(),
        run: None,
    })
}

fn claim(run: &Run) -> Input {
    let (command, _) = run.state.open_commands().next().expect("an open command");
    Input::Claim(Claim { command, worker: Arc::from("w") })
}

fn attribute(span: &Span, name: &str) -> Option<Attribute> {
    span.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
}

#[test]
fn spans_of_commands_are_children_of_their_execution_and_its_caller() {
    let mut run = Run::new(playbook(TWO));
    assert_eq!(spans(&mut run, start()), []);
    let claimed = claim(&run);
    assert_eq!(spans(&mut run, claimed), []);
    let (command, _) = run.state.open_commands().next().unwrap();
    let completed = complete(&run);
    let [a] = &spans(&mut run, completed)[..] else { panic!("one span") };
    assert_eq!((&*a.name, a.id), ("a", SpanId::of_command(command)));
    assert_eq!(a.parent, Some(SpanId::of_execution(ExecutionId::new(1))));
    assert_eq!(attribute(a, "noetl.worker.id"), Some("w".into()));
    assert_eq!(attribute(a, "noetl.tool.kind"), Some("noop".into()));
    assert!(attribute(a, "noetl.waited_ms").is_some());
    assert!(a.from <= a.to);
    let completed = complete(&run);
    let [b, whole] = &spans(&mut run, completed)[..] else { panic!("two spans") };
    assert_eq!(&*b.name, "b");
    assert_eq!(attribute(b, "noetl.worker.id"), None, "nobody took it");
    let caller = TraceContext::read(TRACE, None).unwrap();
    assert_eq!((&*whole.name, whole.parent), ("t", Some(caller.span)));
    assert_eq!(whole.trace.id, caller.trace.id);
    assert_eq!(attribute(whole, "noetl.execution.status"), Some("completed".into()));
    assert_eq!(whole.error, None);
}

#[test]
fn spans_ended_by_a_cancel_are_exported() {
    let parallel = "\
- {step: a, next: {spec: {mode: inclusive}, arcs: [{step: b}, {step: c}]}}
- {step: b, tool: {kind: noop}}
- {step: c, tool: {kind: noop}}";
    let mut run = Run::new(playbook(parallel));
    spans(&mut run, start());
    let cancelled =
        spans(&mut run, Input::Cancel(Cancel { reason: Some("enough".to_owned()), actor: None }));
    let exported: Vec<(&str, Option<&str>)> =
        cancelled.iter().map(|span| (&*span.name, span.error.as_deref())).collect();
    assert_eq!(
        exported,
        [("b", Some("cancelled")), ("c", Some("cancelled")), ("t", Some("enough"))]
    );
}

#[test]
fn an_unsampled_trace_exports_nothing() {
    let mut run = Run::new(playbook(TWO));
    let Input::Start(mut input) = start() else { unreachable!() };
    input.trace = input.trace.map(|trace| trace.sampled(false));
    spans(&mut run, Input::Start(input));
    let completed = complete(&run);
    assert_eq!(spans(&mut run, completed), []);
}

#[test]
fn commands_carry_the_trace_of_their_execution_through_a_snapshot() {
    let run = Run::started(TWO);
    let trace = TraceContext::read(TRACE, Some("a=b")).unwrap().trace;
    let carried = |state: &Execution| {
        let open = state.open_commands().next().expect("an open command");
        open.1.issued.trace.clone()
    };
    assert_eq!(carried(&run.state), Some(trace.clone()));
    let restored =
        Execution::from_snapshot(run.state.id(), &run.state.to_snapshot()).expect("a snapshot");
    assert_eq!(carried(&restored), Some(trace));
}

#[test]
fn a_fork_has_its_own_trace_without_spans_of_its_origin() {
    let mut origin = Run::started(TWO);
    let completed = complete(&origin);
    origin.input(completed).unwrap();
    let other = TRACE.replace("4bf9", "0123");
    let trace = TraceContext::read(&other, None);
    let cut = Seq(u64::try_from(origin.log.len()).unwrap());
    let (log, workload, version) = (origin.log.clone().into(), Map::new(), None);
    let fork = Fork { log, cut, workload, trace, version, actor: None };
    let mut run = Run::new(playbook(TWO));
    run.state = Execution::new(ExecutionId::new(2));
    assert_eq!(spans(&mut run, Input::Fork(Box::new(fork))), []);
    let id = TraceContext::read(&other, None).unwrap().trace.id;
    let is_mine = |event: &Event| match &event.fact {
        Fact::CommandIssued(issued) => issued.trace.as_ref().is_some_and(|it| it.id == id),
        _ => true,
    };
    assert!(run.log.iter().all(is_mine), "{:?}", run.log);
    let completed = complete(&run);
    let exported = spans(&mut run, completed);
    assert_eq!(exported.iter().map(|span| &*span.name).collect::<Vec<_>>(), ["b", "t"]);
    assert!(exported.iter().all(|span| span.trace.id == id));
}

#[test]
fn spans_of_child_executions_are_children_of_their_command() {
    let run = Run::started("- {step: a, tool: {kind: playbook, path: other, return_step: end}}");
    let due = timers_of(&run.state, &run.log);
    let text = serde_json::to_value(&due[0].kind).unwrap();
    let (command, _) = run.state.open_commands().next().unwrap();
    let caller = TraceContext::read(TRACE, Some("a=b")).unwrap();
    let expected = caller.with_span(SpanId::of_command(command));
    assert_eq!(text["trace"], serde_json::to_value(&expected).unwrap());
    // A row without the stored trace.
    let mut old = text;
    old.as_object_mut().unwrap().remove("trace");
    assert!(serde_json::from_value::<crate::TimerKind>(old).is_ok());
}
