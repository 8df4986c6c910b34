//! Random playbooks with large and small values: neither the log nor the state depends on which
//! values are inline, which are loaded, and when a snapshot is restored.

use std::sync::Arc;

use noetl_model::command::ATTEMPTS_MAX;
use noetl_model::event::BlobRef;
use noetl_model::row::EventRow;
use noetl_model::{Failure, FailureKind, Map, Value};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::json;

use super::harness::{Run, playbook, start_with};
use crate::{Claim, Complete, Execution, Expire, Fail, Input, ValueLimits};

/// Inputs of tools; `K` stands for the name of a step.
const INPUTS: [&str; 16] = [
    "{{ sK }}",
    "{{ sK.v }}",
    "{{ steps.sK.data.v | length }}",
    "{{ steps['s' ~ 1].v }}",
    "{{ ctx.x }} and {{ x }}",
    "{{ ctx.a }}",
    "{{ ctx.a.b.v }}",
    "{{ ctx }}",
    "{{ ctx['x' ~ ''] }}",
    "{{ workload }}",
    "{{ workload.big.v | length }} {{ ctx.wide }}",
    "{{ result }}",
    "{{ result.status }} {{ sK.error.message }}",
    "{{ uuid4() }}",
    "{% for one in [1, 2] %}{{ ctx.a }}{{ ctx.list | length }}{% endfor %}",
    "{{ 1 / (ctx.a | length) }}",
];

/// Assignments of steps.
const SETS: [(&str, &str); 8] = [
    ("ctx.x", "{{ output.v }}"),
    ("ctx.a", "{{ output }}"),
    ("ctx.a.b", "{{ output }}"),
    ("ctx.a.b.c", "{{ output.n }}"),
    ("ctx.a.d", "{{ ctx.x }}"),
    ("ctx.list", "{{ (ctx.list or []) + [output.n] }}"),
    ("step.local", "{{ sK }}"),
    ("ctx.wide", "{{ workload.big }}"),
];

/// Conditions of arcs.
const GUARDS: [&str; 7] = [
    "output.go",
    "output.go and ctx.a is defined",
    "sK.v",
    "ctx.list | length < 3",
    "workload.big.n == 2 and output.go",
    "output.error is defined",
    "true",
];

#[derive(Debug, Clone)]
struct PlannedStep {
    has_tool: bool,
    inclusive: bool,
    join: &'static str,
    inputs: Vec<(&'static str, usize)>,
    sets: Vec<((&'static str, &'static str), usize)>,
    arcs: Vec<(usize, &'static str, usize)>,
}

fn planned(steps: usize) -> impl Strategy<Value = PlannedStep> {
    (
        prop::bool::weighted(0.85),
        any::<bool>(),
        select(vec!["all", "all", "each", "any"]),
        prop::collection::vec((select(&INPUTS[..]), 0..steps), 0..4),
        prop::collection::vec((select(&SETS[..]), 0..steps), 0..4),
        prop::collection::vec((0..steps, select(&GUARDS[..]), 0..steps), 0..4),
    )
        .prop_map(|(has_tool, inclusive, join, inputs, sets, arcs)| PlannedStep {
            has_tool,
            inclusive,
            join,
            inputs,
            sets,
            arcs,
        })
}

fn document(plan: &[PlannedStep]) -> String {
    let about = |text: &str, step: &usize| text.replace('K', &step.to_string());
    let quoted = |text: String| Value::String(text).to_string();
    let mut document = String::new();
    for (index, step) in plan.iter().enumerate() {
        let inputs = step
            .inputs
            .iter()
            .enumerate()
            .map(|(place, (text, of))| format!("i{place}: {}", quoted(about(text, of))));
        let inputs = inputs.collect::<Vec<_>>().join(", ");
        let mut sets: Vec<(&str, String)> = Vec::new();
        for ((path, text), of) in &step.sets {
            if !sets.iter().any(|(known, _)| known == path) {
                sets.push((path, quoted(about(text, of))));
            }
        }
        let sets: Vec<String> = sets.iter().map(|(path, text)| format!("{path}: {text}")).collect();
        let arcs = step.arcs.iter().filter_map(|(to, guard, of)| {
            // Steps that take no time and lead back would only find the limit of such cycles.
            let waits = step.has_tool && !guard.contains("error");
            (waits || *to > index)
                .then(|| format!("{{step: s{to}, when: {}}}", quoted(about(guard, of))))
        });
        let arcs = arcs.collect::<Vec<_>>().join(", ");
        let join = step.join;
        let mode = if step.inclusive { "inclusive" } else { "exclusive" };
        let tool = if step.has_tool {
            format!("tool: {{kind: noop, input: {{{inputs}}}}}, ")
        } else {
            String::new()
        };
        document.push_str(&format!(
            "- {{step: s{index}, join: {join}, {tool}set: {{{}}}, next: {{spec: {{mode: {mode}}}, arcs: [{arcs}]}}}}\n",
            sets.join(", ")
        ));
    }
    document
}

#[derive(Debug, Clone)]
enum Way {
    Done,
    AnswerFirst,
    InBlob,
    Fails,
    Expires,
}

#[derive(Debug, Clone)]
struct Move {
    which: Index,
    way: Way,
    go: bool,
    size: usize,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let way = prop_oneof![
        6 => Just(Way::Done),
        2 => Just(Way::AnswerFirst),
        2 => Just(Way::InBlob),
        1 => Just(Way::Fails),
        1 => Just(Way::Expires),
    ];
    let size = select(vec![0, 10, 900, 1100, 3000]);
    let one = (any::<Index>(), way, prop::bool::weighted(0.8), size);
    let one = one.prop_map(|(which, way, go, size)| Move { which, way, go, size });
    prop::collection::vec(one, 1..14)
}

fn value(of: &Move, n: usize) -> Value {
    json!({ "v": "v".repeat(of.size), "go": of.go, "n": n, "f": 2.0, "z": {"b": 1, "a": null} })
}

fn started(plan: &[PlannedStep], limits: ValueLimits, preload: bool) -> Run {
    let mut run = Run::within(playbook(&document(plan)), limits);
    run.preload = preload;
    let payload = json!({ "big": {"v": "w".repeat(2000), "n": 2}, "small": 1 });
    let payload: Map = payload.as_object().cloned().unwrap();
    run.input(start_with(payload)).unwrap();
    run
}

fn perform(run: &mut Run, n: usize, of: &Move) {
    let open = run.open();
    if open.is_empty() {
        return;
    }
    let step = open[of.which.index(open.len())].clone();
    let command = run.command(&step);
    let complete = |data: Option<Value>, is_final: bool| {
        Input::Complete(Complete {
            command,
            data,
            reference: None,
            is_final,
            ctx: noetl_model::Map::new(),
            step: noetl_model::Map::new(),
            run: None,
        })
    };
    let inputs = match of.way {
        Way::Done => vec![complete(Some(value(of, n)), true)],
        Way::AnswerFirst => vec![complete(Some(value(of, n)), false), complete(None, true)],
        Way::InBlob => {
            let digest = format!("blob-{n}");
            run.blobs.insert(digest.clone(), value(of, n).to_string().into_bytes());
            let media_type = Arc::from("application/json");
            let reference = BlobRef { digest: Arc::from(digest), bytes: 9, media_type };
            let (data, reference) = (Some(json!({ "go": of.go })), Some(Arc::new(reference)));
            vec![Input::Complete(Complete {
                command,
                data,
                reference,
                is_final: true,
                ctx: noetl_model::Map::new(),
                step: noetl_model::Map::new(),
                run: None,
            })]
        }
        Way::Fails => {
            let failure = Failure::new(FailureKind::Unknown, "m".repeat(of.size));
            let failure = failure.with_details(value(of, n));
            vec![Input::Fail(Fail {
                command,
                failure,
                ctx: noetl_model::Map::new(),
                step: noetl_model::Map::new(),
            })]
        }
        Way::Expires => {
            let claim = Claim { command, worker: Arc::from("w") };
            let reason = "gone".to_owned();
            let expire = Expire { command, reason, attempts_max: ATTEMPTS_MAX, may_have_run: true };
            vec![Input::Claim(claim), Input::Expire(expire)]
        }
    };
    for input in inputs {
        let _ = run.input(input);
    }
}

fn rows(run: &Run) -> Vec<EventRow> {
    run.log.iter().map(EventRow::from).collect()
}

fn plans() -> impl Strategy<Value = Vec<PlannedStep>> {
    (2_usize..6).prop_flat_map(|steps| prop::collection::vec(planned(steps), steps))
}

proptest! {
    // A default: `proptest!` reads `PROPTEST_CASES` after this, so the variable wins.
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The harness also checks that a request for values changes no state, that no value is
    /// requested twice, and that replaying the log gives the current state.
    #[test]
    fn inline_and_stored_values_lead_to_the_same_log(plan in plans(), moves in moves()) {
        let nothing = ValueLimits { value_bytes: 0, total_bytes: 0 };
        let tight = ValueLimits { value_bytes: 1024, total_bytes: 3000 };
        let mut inline = started(&plan, ValueLimits::NONE, false);
        let others = [(nothing, false), (nothing, true), (tight, false), (ValueLimits::default(), true)];
        let mut others = others.map(|(limits, preload)| started(&plan, limits, preload));
        for (n, of) in moves.iter().enumerate() {
            perform(&mut inline, n, of);
            for run in &mut others {
                perform(run, n, of);
            }
        }
        for run in &others {
            prop_assert_eq!(rows(run), rows(&inline));
            prop_assert_eq!(run.state.status(), inline.state.status());
        }
    }

    /// Restores a snapshot at every event and folds the rest of the log.
    #[test]
    fn folding_the_tail_onto_a_snapshot_equals_folding_the_whole_log(plan in plans(), moves in moves()) {
        let nothing = ValueLimits { value_bytes: 0, total_bytes: 0 };
        for limits in [nothing, ValueLimits::default(), ValueLimits::NONE] {
            let mut run = started(&plan, limits, true);
            for (n, of) in moves.iter().enumerate() {
                perform(&mut run, n, of);
            }
            let id = run.state.id();
            let mut folded = Execution::with_value_limits(id, limits);
            let mut restored: Vec<Execution> = Vec::new();
            for event in &run.log {
                let bytes = folded.to_snapshot();
                restored.push(Execution::from_snapshot_within(id, &bytes, limits).unwrap());
                folded.apply(event);
                for state in &mut restored {
                    state.apply(event);
                }
                // Only the newest is compared at each event; all of them at the end.
                prop_assert_eq!(restored.last().unwrap(), &folded);
            }
            let bytes = folded.to_snapshot();
            for state in &restored {
                prop_assert_eq!(state, &folded);
                prop_assert_eq!(state.bytes(), folded.bytes());
                prop_assert_eq!(&state.to_snapshot(), &bytes, "in the same order");
            }
        }
    }
}
