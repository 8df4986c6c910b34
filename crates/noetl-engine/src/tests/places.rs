//! Large values are known by their places, and nothing that is decided depends on it.

use std::sync::Arc;

use noetl_model::event::BlobRef;
use noetl_model::{Event, Failure, FailureKind, Seq, Value};
use serde_json::json;

use super::harness::{Run, playbook, start, start_with};
use crate::{
    Abandon, Complete, DecisionValues, Execution, Fail, Input, Rejection, Status, VALUES_BYTES_MAX,
    ValueRef, required_values,
};

fn large() -> Value {
    json!({ "text": "x".repeat(5000), "n": 5 })
}

fn seqs(places: &[ValueRef]) -> Vec<u64> {
    let seq = |place: &ValueRef| match place {
        ValueRef::Event { seq, .. } => seq.0,
        ValueRef::Blob(_) => panic!("{place:?}"),
    };
    places.iter().map(seq).collect()
}

fn blob() -> Arc<BlobRef> {
    Arc::new(BlobRef {
        digest: Arc::from("sha256:1"),
        bytes: 1 << 20,
        media_type: Arc::from("application/json"),
    })
}

fn complete_with_blob(run: &mut Run, step: &str, fields: Value) -> Result<(), Rejection> {
    let command = run.command(step);
    let (data, reference) = (Some(fields), Some(blob()));
    let input = Complete {
        command,
        data,
        reference,
        is_final: true,
        ctx: noetl_model::Map::new(),
        step: noetl_model::Map::new(),
        run: None,
    };
    run.input(Input::Complete(input)).map(|_| ())
}

const CHAIN: &str = "\
- {step: a, tool: {kind: noop}, next: {arcs: [{step: b}]}}
- {step: b, tool: {kind: noop}, next: {arcs: [{step: c}]}}
- {step: c, tool: {kind: noop, input: {a: '{{ a.n }}', b: '{{ steps.b }}'}}}";

#[test]
fn the_state_does_not_grow_with_a_large_result() {
    let mut run = Run::started(CHAIN);
    let before = run.state.bytes();
    run.complete("a", large());
    assert!(run.state.bytes() < before + 1000, "{} after {before}", run.state.bytes());
}

#[test]
fn values_recorded_by_a_decision_are_available_to_it() {
    let mut run = Run::started(
        "\
- {step: a, tool: {kind: noop}, set: {ctx.v: '{{ output.text }}'},
   next: {arcs: [{step: b, when: output.n == 5 and a.n == 5 and ctx.v | length == 5000}]}}
- {step: b, tool: {kind: noop, input: {v: '{{ ctx.v }}', r: '{{ result.n }}'}}}",
    );
    run.complete("a", large());
    assert!(run.asked.is_empty(), "{:?}", run.asked);
    assert_eq!(run.open(), ["b"]);
}

#[test]
fn all_values_that_a_step_names_are_predicted_and_requested_at_once() {
    let mut run = Run::started(CHAIN);
    run.complete("a", large());
    assert!(run.asked.is_empty());
    let command = run.command("b");
    let input = Complete {
        command,
        data: Some(large()),
        reference: None,
        is_final: true,
        ctx: noetl_model::Map::new(),
        step: noetl_model::Map::new(),
        run: None,
    };
    let known = required_values(&run.playbook, &run.state, &Input::Complete(input));
    run.complete("b", large());
    assert_eq!(run.asked.len(), 1);
    assert_eq!(seqs(&run.asked[0]), [4], "the call.done of a; that of b is at hand");
    assert_eq!(seqs(&known), [4]);
    let (_, open) = run.state.open_commands().next().unwrap();
    assert_eq!(Value::Object(open.issued.input.clone()), json!({"a": 5, "b": large()}));
}

#[test]
fn branches_that_start_together_request_their_values_together() {
    let document = playbook(
        "\
- {step: a, tool: {kind: noop}, next: {arcs: [{step: b}]}}
- {step: b, tool: {kind: noop}, set: {ctx.v: '{{ output }}'}, next: {arcs: [{step: c}]}}
- {step: c, tool: {kind: noop}, next: {spec: {mode: inclusive}, arcs: [
    {step: d, when: output}, {step: e, when: output}, {step: f, when: output}]}}
- {step: d, tool: {kind: noop, input: {a: '{{ a.n + 1 }}'}}}
- {step: e, tool: {kind: noop, input: {v: '{{ ctx.v.n + 1 }}'}}}
- {step: f, tool: {kind: noop, input: {w: '{{ workload.w.n + 1 }}', x: '{{ b.n }}'}}}",
    );
    let mut run = Run::new(document);
    let payload = json!({ "w": large() }).as_object().cloned().unwrap();
    run.input(start_with(payload)).unwrap();
    run.complete("a", large());
    run.complete("b", large());
    run.complete("c", json!(true));
    assert_eq!(run.asked.len(), 1, "{:?}", run.asked);
    assert_eq!(run.asked[0].len(), 4, "{:?}", run.asked);
    assert_eq!(run.open(), ["d", "e", "f"]);
}

#[test]
fn the_name_of_a_blob_does_not_load_it() {
    let document = "\
- {step: a, tool: {kind: noop}, set: {ctx.r: '{{ output._ref }}'}, next: {arcs: [{step: b}]}}
- {step: b, tool: {kind: noop, input: {r: '{{ a._ref }}', u: '{{ steps.a._uri }}', s: '{{ a._store }}'}},
   next: {arcs: [{step: c}]}}
- {step: c, tool: {kind: noop, input: {n: '{{ steps.a.n }}'}}}";
    let mut run = Run::started(document);
    complete_with_blob(&mut run, "a", json!({})).unwrap();
    assert!(run.asked.is_empty(), "{:?}", run.asked);
    let (_, open) = run.state.open_commands().next().unwrap();
    let name = open.issued.input["r"].as_str().unwrap();
    assert!(name.ends_with("/a/sha256:1-1048576"), "{name}");
    assert_eq!(open.issued.input["u"].as_str(), Some(name));
    let input = Input::Complete(Complete {
        command: run.command("b"),
        data: Some(json!(1)),
        reference: None,
        is_final: true,
        ctx: noetl_model::Map::new(),
        step: noetl_model::Map::new(),
        run: None,
    });
    assert!(required_values(&run.playbook, &run.state, &input).is_empty());
    // What is not its name is read, once the decision finds that it is not among the fields.
    run.input(input).unwrap();
    assert!(matches!(run.asked[0][..], [ValueRef::Blob(_)]), "{:?}", run.asked);
}

#[test]
fn values_of_steps_that_may_not_be_entered_are_not_loaded() {
    let mut run = Run::started(
        "\
- {step: a, tool: {kind: noop}, next: {arcs: [{step: b}]}}
- {step: b, tool: {kind: noop}, next: {arcs: [
    {step: c, when: output}, {step: d, when: workload.n == 3}, {step: e}]}}
- {step: c, tool: {kind: noop, input: {x: '{{ a }}'}}}
- {step: d, tool: {kind: noop, input: {x: '{{ workload.n }}'}}}
- {step: e, tool: {kind: noop, input: {x: '{{ a }}'}}}",
    );
    run.complete("a", large());
    let data = Some(json!(false));
    let input = Complete {
        command: run.command("b"),
        data,
        reference: None,
        is_final: true,
        ctx: noetl_model::Map::new(),
        step: noetl_model::Map::new(),
        run: None,
    };
    assert!(required_values(&run.playbook, &run.state, &Input::Complete(input.clone())).is_empty());
    run.input(Input::Complete(input)).unwrap();
    assert_eq!((run.asked.len(), run.open()), (0, vec!["d".to_owned()]));
}

#[test]
fn values_of_a_condition_are_requested_before_it_is_evaluated() {
    let mut run = Run::started(
        "\
- {step: a, tool: {kind: noop}, next: {arcs: [{step: b}]}}
- {step: b, tool: {kind: noop}, next: {arcs: [{step: c, when: a.n == 6}, {step: d}]}}
- {step: c, tool: {kind: noop}}
- {step: d, tool: {kind: noop}}",
    );
    run.complete("a", large());
    run.complete("b", json!(1));
    assert_eq!((run.asked.len(), run.open()), (1, vec!["d".to_owned()]));
}

#[test]
fn the_value_of_a_computed_name_is_requested_by_the_decision() {
    let mut run = Run::started(
        "\
- {step: a, tool: {kind: noop}, next: {arcs: [{step: b}]}}
- {step: b, tool: {kind: noop}, next: {arcs: [{step: c}]}}
- {step: c, tool: {kind: noop, input: {a: \"{{ steps['' ~ b].n }}\"}}}",
    );
    run.preload = true;
    run.complete("a", large());
    run.complete("b", json!("a"));
    assert_eq!(run.asked.len(), 1);
    let (_, open) = run.state.open_commands().next().unwrap();
    assert_eq!(open.issued.input["a"], json!(5));
}

#[test]
fn the_last_leafs_data_is_loaded_for_the_result() {
    let mut run = Run::started(
        "\
- {step: a, tool: {kind: noop}, next: {spec: {mode: inclusive}, arcs: [{step: end}, {step: c}]}}
- {step: end, tool: {kind: noop}}
- {step: c, tool: {kind: noop}}",
    );
    run.complete("a", json!(1));
    run.complete("end", large());
    assert!(run.asked.is_empty());
    let events = run.complete("c", json!(2));
    assert_eq!(run.asked.len(), 1);
    let noetl_model::Fact::PlaybookCompleted { result, .. } = &events.last().unwrap().fact else {
        panic!("{events:?}");
    };
    assert_eq!(*result, large());
}

#[test]
fn an_early_result_is_loaded_when_the_command_ends() {
    let mut run = Run::started("- {step: a, tool: {kind: noop}, set: {ctx.n: '{{ output.n }}'}}");
    run.preload = true;
    let command = run.command("a");
    let answer = Complete {
        command,
        data: Some(large()),
        reference: None,
        is_final: false,
        ctx: noetl_model::Map::new(),
        step: noetl_model::Map::new(),
        run: None,
    };
    run.input(Input::Complete(answer)).unwrap();
    let end = Complete {
        command,
        data: None,
        reference: None,
        is_final: true,
        ctx: noetl_model::Map::new(),
        step: noetl_model::Map::new(),
        run: None,
    };
    run.input(Input::Complete(end)).unwrap();
    assert!(run.asked.is_empty(), "it was known before: {:?}", run.asked);
    assert_eq!(run.state.status(), Status::Completed);
}

#[test]
fn a_large_failure_is_loaded_when_it_ends_the_execution() {
    let document = "\
- {step: a, tool: {kind: noop}, next: {spec: {mode: inclusive}, arcs: [{step: b}, {step: c}]}}
- {step: b, tool: {kind: noop}}
- {step: c, tool: {kind: noop}}";
    // Details that are no map are not part of what templates see.
    for details in [large(), json!("y".repeat(5000))] {
        let mut run = Run::started(document);
        run.complete("a", json!(1));
        let claim = crate::Claim { command: run.command("c"), worker: Arc::from("w") };
        run.input(Input::Claim(claim)).unwrap();
        let failure = Failure::new(FailureKind::Unknown, "it broke").with_details(details);
        let command = run.command("b");
        run.input(Input::Fail(Fail {
            command,
            failure: failure.clone(),
            ctx: noetl_model::Map::new(),
            step: noetl_model::Map::new(),
        }))
        .unwrap();
        assert!(run.state.is_failing() && run.state.bytes() < 9000);
        let events = run.input(Input::Abandon(Abandon)).unwrap();
        assert_eq!(run.asked.len(), 1);
        let last = &events.last().unwrap().fact;
        let noetl_model::Fact::PlaybookFailed { failure: recorded, .. } = last else {
            panic!("{last:?}");
        };
        assert_eq!(*recorded, failure);
    }
}

#[test]
fn a_large_failure_that_ends_the_execution_at_once_is_not_loaded() {
    let mut run = Run::started("- {step: a, tool: {kind: noop}}");
    // Details that are no map: what templates see of the failure stays small.
    let failure = Failure::new(FailureKind::Unknown, "it broke");
    let failure = failure.with_details(json!("y".repeat(5000)));
    let command = run.command("a");
    run.input(Input::Fail(Fail {
        command,
        failure: failure.clone(),
        ctx: noetl_model::Map::new(),
        step: noetl_model::Map::new(),
    }))
    .unwrap();
    let noetl_model::Fact::PlaybookFailed { failure: recorded, .. } = &run.log.last().unwrap().fact
    else {
        panic!("{:?}", run.log.last());
    };
    assert_eq!((recorded, run.asked.len()), (&failure, 0));
}

#[test]
fn a_blob_is_loaded_only_if_more_than_its_fields_is_read() {
    let document = "\
- {step: a, tool: {kind: noop}, next: {arcs: [{step: b, when: output.rows == 7}]}}
- {step: b, tool: {kind: noop}, next: {arcs: [{step: c, when: a.rows == 7 and a.sum == 3}]}}
- {step: c, tool: {kind: noop}}";
    let mut run = Run::started(document);
    let value = json!({"rows": 7, "sum": 3, "all": []});
    run.blobs.insert("sha256:1".into(), value.to_string().into_bytes());
    complete_with_blob(&mut run, "a", json!({"rows": 7})).unwrap();
    assert!(run.asked.is_empty());
    run.complete("b", json!(1));
    assert_eq!(run.asked, [[ValueRef::Blob(blob())]]);
    assert_eq!(run.open(), ["c"]);
}

#[test]
fn an_unreadable_blob_fails_the_step_that_reads_it() {
    let document = "\
- {step: a, tool: {kind: noop}, next: {arcs: [{step: b}]}}
- {step: b, tool: {kind: noop, input: {x: '{{ a.x }}'}}}";
    for bytes in [None, Some(b"not json".to_vec())] {
        let mut run = Run::started(document);
        run.blobs.extend(bytes.map(|bytes| ("sha256:1".to_owned(), bytes)));
        complete_with_blob(&mut run, "a", json!(null)).unwrap();
        assert_eq!(run.state.status(), Status::Failed);
        let error = run.state.summary().error.unwrap();
        assert!(error.contains("sha256:1 cannot be read"), "{error}");
    }
}

#[test]
fn a_blob_that_is_the_result_is_not_loaded() {
    let mut run = Run::started("- {step: a, tool: {kind: noop}}");
    let (command, reference) = (run.command("a"), Some(blob()));
    let input = Complete {
        command,
        data: None,
        reference,
        is_final: true,
        ctx: noetl_model::Map::new(),
        step: noetl_model::Map::new(),
        run: None,
    };
    run.input(Input::Complete(input)).unwrap();
    assert!(run.asked.is_empty());
    let last = &run.log.last().unwrap().fact;
    let passed = Some(blob());
    assert!(
        matches!(last, noetl_model::Fact::PlaybookCompleted { reference, .. } if *reference == passed)
    );
}

#[test]
fn the_total_size_of_values_is_bounded() {
    let step = |n: usize| {
        let next = n + 1;
        format!("- {{step: s{n}, tool: {{kind: noop}}, next: {{arcs: [{{step: s{next}}}]}}}}\n")
    };
    // Each result is small enough to be held; together they are not.
    let text = "x".repeat(900);
    let count = VALUES_BYTES_MAX / 900 + 200;
    let mut document: String = (0..count).map(step).collect();
    document.push_str(&format!("- {{step: s{count}, tool: {{kind: noop}}}}\n"));
    let playbook = playbook(&document);
    let mut state = Execution::new(noetl_model::ExecutionId::new(1));
    let mut run = Run::new(playbook);
    run.input(start()).unwrap();
    for n in 0..count {
        let command = run.command(&format!("s{n}"));
        let data = Some(json!(text));
        let input = Complete {
            command,
            data,
            reference: None,
            is_final: true,
            ctx: noetl_model::Map::new(),
            step: noetl_model::Map::new(),
            run: None,
        };
        // Without the harness's checks, which replay the whole log each time.
        let events = crate::decide(
            &run.playbook,
            &mut run.state,
            Input::Complete(input),
            &mut crate::DecisionEnv {
                now: noetl_model::Timestamp::default(),
                ids: &mut {
                    let mut id = i64::try_from(n).unwrap() * 100 + 1000;
                    move || {
                        id += 1;
                        noetl_model::EventId::new(id)
                    }
                },
                entropy: noetl_template::Entropy::new(1),
                env: Arc::default(),
                loaded: DecisionValues::new(),
                caps: crate::ExecutionLimits::default(),
                notify: &|_| false,
                traced: false,
                claim_for: &mut |_, _| None,
            },
        )
        .unwrap()
        .events;
        run.log.extend(events.iter().map(|event| Event::clone(event)));
    }
    assert!(run.state.inline_bytes() < VALUES_BYTES_MAX + 100 * count);
    assert!(run.state.inline_bytes() > VALUES_BYTES_MAX);
    for event in &run.log {
        state.apply(event);
    }
    assert_eq!(state, run.state);
}

#[test]
fn an_imported_row_changes_only_the_version() {
    let mut run = Run::started("- {step: a, tool: {kind: noop}}");
    let mut event = run.log.last().unwrap().clone();
    event.seq = Seq(event.seq.0 + 1);
    event.fact = noetl_model::Fact::Imported(Box::default());
    let (before, version) = (run.state.clone(), event.seq);
    run.state.apply(&event);
    assert_eq!(run.state.version(), version);
    run.state.version = before.version;
    run.state.updated_at = before.updated_at;
    assert_eq!(run.state, before);
}

#[test]
fn a_replaced_id_is_stored_with_the_reported_one() {
    let mut run = Run::started("- {step: a, tool: {kind: noop}}");
    let report = noetl_model::event::ReportedEvent {
        event_type: "note".into(),
        step: Arc::from("a"),
        status: "x".into(),
        payload: None,
        meta: None,
        worker: None,
        key: None,
        columns: None,
    };
    let keep = crate::RecordReport { said: report, id: None, key: Some(77) };
    let events = run.input(Input::Keep(Box::new(keep))).unwrap();
    let noetl_model::Fact::Reported(recorded) = &events[0].fact else { panic!("{events:?}") };
    assert_eq!(recorded.key, Some(77));
}
