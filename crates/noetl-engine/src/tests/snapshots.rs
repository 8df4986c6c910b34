//! Tests of snapshots of execution states.

use std::sync::Arc;

use noetl_model::event::CommandSpec;
use noetl_model::{
    Event, EventId, ExecutionId, Fact, Failure, FailureKind, Map, Routing, Seq, StepOutcome,
    Timestamp, Value,
};
use serde_json::json;

use super::harness::{Run, playbook, start_with};
use crate::{
    Claim, Complete, Execution, Fail, Input, MarkStarted, SNAPSHOT_LOG_BYTES_MIN, SnapshotError,
    snapshot_is_due,
};

/// As it was written first. Never changed: a new shape is a new version and a new file.
const FIRST: &[u8] = include_bytes!("../../test-data/snapshot-v1.json");

/// Returns a history that fills every field of the state.
fn history() -> Run {
    let document = playbook(
        "\
- {step: a, tool: {kind: noop}, next: {spec: {mode: inclusive}, arcs: [
    {step: b}, {step: c}, {step: d}, {step: e}, {step: f}, {step: any}]}}
- {step: b, tool: {kind: noop}, set: {ctx.big: '{{ output }}', ctx.big.n: 7, ctx.small.x: 2.0}, next: {arcs: [{step: join}]}}
- {step: c, tool: {kind: noop, input: {given: '{{ a.z }}'}}, next: {arcs: [{step: join}]}}
- {step: d, tool: {kind: noop, timeout: 5s}}
- {step: e, tool: {kind: noop}}
- {step: f, tool: {kind: noop}, next: {arcs: [{step: any, when: output.error is defined}]}}
- {step: any, join: any, tool: {kind: noop}}
- {step: join, tool: {kind: noop}}",
    );
    let mut run = Run::new(document);
    let payload =
        json!({"large": "w".repeat(2000), "u": u64::MAX, "i": -3, "f": 1.0, "none": null});
    let Input::Start(mut start) = start_with(payload.as_object().cloned().unwrap()) else {
        unreachable!()
    };
    // The first version did not store this field.
    start.trace = None;
    run.input(Input::Start(start)).unwrap();
    run.complete("a", json!({"z": 1, "a": [2.5, {"k": "v"}]}));
    run.complete("b", json!({"text": "x".repeat(3000), "n": 1}));
    let worker: Arc<str> = Arc::from("w");
    let claim = |command| Input::Claim(Claim { command, worker: worker.clone() });
    let (c, d, e, f) = (run.command("c"), run.command("d"), run.command("e"), run.command("f"));
    run.input(claim(c)).unwrap();
    run.input(Input::Begin(MarkStarted { command: c, worker: worker.clone() })).unwrap();
    let answer = Some(json!("y".repeat(2000)));
    let complete = Complete {
        command: c,
        data: answer,
        reference: None,
        is_final: false,
        ctx: noetl_model::Map::new(),
        step: noetl_model::Map::new(),
        run: None,
    };
    run.input(Input::Complete(complete)).unwrap();
    run.input(claim(d)).unwrap();
    run.input(claim(run.command("any"))).unwrap();
    let reference = noetl_model::event::BlobRef {
        digest: Arc::from("sha256:00ff"),
        bytes: 70_000,
        media_type: Arc::from("application/json"),
    };
    let (data, reference) = (Some(json!({"rows": 7})), Some(Arc::new(reference)));
    let complete = Complete {
        command: e,
        data,
        reference,
        is_final: true,
        ctx: noetl_model::Map::new(),
        step: noetl_model::Map::new(),
        run: None,
    };
    run.input(Input::Complete(complete)).unwrap();
    let failure = Failure::new(FailureKind::Timeout, "too slow").with_details(json!({"s": 5}));
    run.input(Input::Fail(Fail {
        command: f,
        failure: failure.clone(),
        ctx: noetl_model::Map::new(),
        step: noetl_model::Map::new(),
    }))
    .unwrap();
    run.input(Input::Fail(Fail {
        command: d,
        failure,
        ctx: noetl_model::Map::new(),
        step: noetl_model::Map::new(),
    }))
    .unwrap();
    run
}

#[test]
fn a_snapshot_of_the_first_version_is_read() {
    let mut run = history();
    // The first version did not store this field.
    run.state.commands.values_mut().for_each(|open| open.since = Timestamp::default());
    let restored = Execution::from_snapshot(run.state.id(), FIRST.trim_ascii_end()).unwrap();
    assert_eq!(restored, run.state);
    let written = String::from_utf8(run.state.to_snapshot()).unwrap();
    assert_eq!(written, String::from_utf8_lossy(FIRST.trim_ascii_end()), "\n{written}");
}

#[test]
fn the_sample_history_fills_every_field_of_a_snapshot() {
    let state: Map = serde_json::from_slice(FIRST).unwrap();
    for (key, value) in &state {
        let is_empty = match value {
            Value::Null => true,
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        };
        // Those of an execution that is over.
        let may_be = matches!(key.as_str(), "ended_at" | "error");
        assert!(may_be || !is_empty, "{key} is empty");
    }
    let text = String::from_utf8_lossy(FIRST);
    for kind in ["\"held\"", "\"event\"", "\"blob\"", "\"parts\"", "\"answer\":{"] {
        assert!(text.contains(kind), "{kind}");
    }
}

#[test]
fn an_invalid_snapshot_is_an_error() {
    let id = ExecutionId::new(1);
    let with = |key: &str, value: Value| {
        let mut state: Map = serde_json::from_slice(FIRST).unwrap();
        state.insert(key.to_owned(), value);
        Execution::from_snapshot(id, &serde_json::to_vec(&state).unwrap()).map(|_| ())
    };
    assert!(with("v", json!(1)).is_ok());
    assert!(matches!(with("v", json!(3)), Err(SnapshotError::Version(3))));
    let other = with("id", json!(2));
    assert!(matches!(other, Err(SnapshotError::OtherExecution(id)) if id.get() == 2));
    assert!(matches!(with("status", json!("lost")), Err(SnapshotError::Impossible(_))));
    let parts = json!([["x", {"parts": [[["a"], {"parts": []}]]}]]);
    assert!(matches!(with("ctx", parts), Err(SnapshotError::Impossible(_))));
    assert!(matches!(
        with("ctx", json!([["x", {"parts": []}]])),
        Err(SnapshotError::Impossible(_))
    ));
    let newer = Execution::from_snapshot(id, br#"{"v":9,"shape":"unknown"}"#);
    assert!(matches!(newer, Err(SnapshotError::Version(9))));
    for length in [0, 1, FIRST.len() / 2] {
        let cut = Execution::from_snapshot(id, &FIRST[..length]);
        assert!(matches!(cut, Err(SnapshotError::Unreadable(_))), "{length} bytes");
    }
}

#[test]
fn a_snapshot_is_due_once_the_log_outgrows_the_last_one() {
    assert!(!snapshot_is_due(SNAPSHOT_LOG_BYTES_MIN - 1, 0));
    assert!(snapshot_is_due(SNAPSHOT_LOG_BYTES_MIN, 0));
    assert!(!snapshot_is_due(1_000_000, 1_000_000));
    assert!(snapshot_is_due(1_000_001, 1_000_000));
}

/// Runs a cycle of three steps until the log has `events` events.
fn circle(events: usize) -> Execution {
    let mut state = Execution::new(ExecutionId::new(1));
    let steps: Vec<Arc<str>> = ["a", "b", "c"].map(Arc::from).to_vec();
    let mut seq = 0;
    let mut apply = |state: &mut Execution, fact: Fact| {
        seq += 1;
        let id = EventId::new(i64::try_from(seq).unwrap());
        let at = Timestamp::from_micros(id.get());
        let execution = ExecutionId::new(1);
        state.apply(&Event { execution, id, seq: Seq(seq), at, fact, actor: None });
        id
    };
    let worker: Arc<str> = Arc::from("w");
    for n in 0..events / 6 {
        let step = steps[n % 3].clone();
        let run = u32::try_from(n / 3 + 1).unwrap();
        let entered =
            Fact::StepEntered { step: step.clone(), run, tokens: 0, round: None, deadline: None };
        apply(&mut state, entered);
        let issued = CommandSpec {
            step: step.clone(),
            run,
            attempt: 1,
            tool: Arc::from("noop"),
            config: Map::new(),
            input: Map::new(),
            timeout_ms: None,
            scope: None,
            item: None,
            idempotent: true,
            pool: Some(Arc::from("gpu")),
            trace: None,
        };
        let command = apply(&mut state, Fact::CommandIssued(Arc::new(issued))).into();
        let (step, worker) = (step.clone(), worker.clone());
        let claimed = Fact::CommandClaimed { command, step: step.clone(), worker };
        apply(&mut state, claimed);
        let data = json!({ "n": n, "page": "p".repeat(800) });
        let done = Fact::CallDone { command, step: step.clone(), data, reference: None, run: None };
        apply(&mut state, done);
        apply(&mut state, Fact::CommandCompleted { command, step: step.clone(), item: None });
        let (outcome, next) = (StepOutcome::Done, Routing::default());
        apply(&mut state, Fact::StepExited { step, run, outcome, next });
    }
    state
}

#[test]
fn a_snapshot_does_not_grow_with_the_log() {
    let (short, long) = (circle(600).to_snapshot(), circle(60_000).to_snapshot());
    assert!(long.len() < short.len() + 100, "{} after {}", long.len(), short.len());
}

/// Prints the time to restore snapshots. Run with `--run-ignored only --no-capture`.
#[test]
#[ignore = "a measurement"]
fn measure_restoring_of_snapshots() {
    let state = circle(100_000);
    let bytes = state.to_snapshot();
    let started = std::time::Instant::now();
    let restored = Execution::from_snapshot(state.id(), &bytes).unwrap();
    let took = started.elapsed();
    assert_eq!(restored, state);
    println!("100 000 events: {} bytes, restored in {took:?}", bytes.len());
    let mut full = state;
    for n in 0..4000 {
        let slot = noetl_template::from_json(&json!({ "page": "p".repeat(900) })).into();
        full.results.set(Arc::from(format!("s{n}")), slot, 996);
    }
    let bytes = full.to_snapshot();
    let started = std::time::Instant::now();
    let restored = Execution::from_snapshot(full.id(), &bytes);
    println!("as much as is held: {} bytes, restored in {:?}", bytes.len(), started.elapsed());
    assert!(restored.is_ok());
}
