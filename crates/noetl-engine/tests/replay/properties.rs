//! Properties of the fold of any log.

use noetl_engine::replay::{ReplayBase, ReplayEvent, ReplayState, canonical};
use noetl_model::{Map, Value};
use proptest::prelude::*;
use serde_json::json;

use crate::{event, fold, scope};

const TYPES: [&str; 24] = [
    "step.enter",
    "step.exit",
    "playbook.completed",
    "playbook_cancelled",
    "command.issued",
    "command.claimed",
    "command.started",
    "command.completed",
    "command.failed",
    "command.other",
    "stage.opened",
    "stage.closed",
    "frame.dispatched",
    "frame.started",
    "frame.abandoned",
    "frame.committed",
    "frame.failed",
    "loop.done",
    "loop.shard.done",
    "loop.shard.failed",
    "order.created",
    "order.deleted",
    "order.",
    "",
];

/// Keys the fold looks for, so that random objects meet it often.
const KEYS: [&str; 30] = [
    "stage_id",
    "frame_id",
    "command_id",
    "loop_id",
    "loop_event_id",
    "__loop_epoch_id",
    "business_object",
    "business_object_type",
    "business_object_id",
    "business_object_version",
    "object_type",
    "object_id",
    "type",
    "id",
    "version",
    "state",
    "patch",
    "attributes",
    "reference",
    "rows_ref",
    "meta",
    "ipc",
    "sha256",
    "row_count",
    "ref",
    "uri",
    "attempt",
    "total",
    "parent_stage_id",
    "worker_id",
];

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-3_i64..3).prop_map(Value::from),
        any::<f64>().prop_map(|float| json!(float)),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number(),
        any::<String>().prop_map(Value::from),
        "[a-c]".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let key = prop_oneof![
            4 => proptest::sample::select(&KEYS[..]).prop_map(str::to_owned),
            1 => any::<String>(),
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((key, inner), 0..8)
                .prop_map(|fields| Value::Object(Map::from_iter(fields))),
        ]
    })
}

fn columns() -> impl Strategy<Value = Value> {
    let kind = proptest::option::of(proptest::sample::select(&TYPES[..]));
    let status = proptest::option::of(proptest::sample::select(&["", "RUNNING", "DELETED"][..]));
    let aggregate = proptest::sample::select(&["stage", "frame", "business_object", "x"][..]);
    let id = proptest::option::of(1_i64..3);
    (kind, status, aggregate, id.clone(), id.clone(), id, any::<Option<String>>(), value(), value())
        .prop_map(|(kind, status, of, command, stage, frame, name, result, meta)| {
            json!({
                "event_id": 0, "event_type": kind, "status": status, "node_name": name,
                "command_id": command, "stage_id": stage, "frame_id": frame, "aggregate_type": of,
                "aggregate_id": name, "result": result, "meta": meta,
            })
        })
}

/// Generates logs with distinct IDs, in any order.
fn log() -> impl Strategy<Value = Vec<ReplayEvent>> {
    let ids = proptest::collection::hash_set(any::<i64>(), 0..30);
    ids.prop_flat_map(|ids| {
        let ids: Vec<i64> = ids.into_iter().collect();
        proptest::collection::vec(columns(), ids.len()).prop_map(move |columns| {
            let with_id = |(columns, id): (Value, &i64)| {
                let mut columns = columns;
                columns["event_id"] = json!(id);
                event(&columns)
            };
            columns.into_iter().zip(&ids).map(with_id).collect()
        })
    })
}

proptest! {
    #[test]
    fn a_fold_from_any_stored_state_equals_the_full_fold(
        mut log in log(),
        cut in any::<proptest::sample::Index>(),
    ) {
        let whole = fold(scope(), &log);
        log.sort_by_key(|event| event.event_id);
        let (before, after) = log.split_at(cut.index(log.len() + 1));
        let text = serde_json::to_string(&fold(scope(), before)).expect("JSON");
        let stored: ReplayState = serde_json::from_str(&text).expect("a state");
        let base = ReplayBase { state: Some(stored), ..ReplayBase::default() };
        let mut state = ReplayState::begin(scope(), base);
        after.iter().for_each(|event| state.apply(event));
        state.seal();
        prop_assert_eq!(state, whole);
    }

    #[test]
    fn the_input_order_of_events_does_not_matter(log in log()) {
        let mut other = log.clone();
        other.reverse();
        let folded = fold(scope(), &log);
        prop_assert_eq!(&fold(scope(), &other), &folded);
        prop_assert_eq!(folded.event_count, u64::try_from(log.len()).expect("few"));
    }

    #[test]
    fn a_checksum_covers_the_state_without_the_checksum(log in log()) {
        let state = fold(scope(), &log);
        let mut value = serde_json::to_value(&state).expect("JSON");
        value.as_object_mut().expect("an object").remove("checksum");
        let parts = state.projection_checksums.clone().expect("a sealed state");
        let of = noetl_engine::replay::Checksum::of_value;
        prop_assert_eq!(of(&value), state.checksum.expect("a sealed state"));
        prop_assert_eq!(of(&value["business_objects"]), parts.business_object);
        prop_assert_eq!(of(&value["commands"]), parts.command);
        prop_assert_eq!(of(&value["execution"]), parts.execution);
        prop_assert_eq!(of(&value["frames"]), parts.frame);
        prop_assert_eq!(of(&value["loops"]), parts.r#loop);
        prop_assert_eq!(of(&value["stages"]), parts.stage);
    }

    #[test]
    fn canonical_text_parses_to_the_same_value(value in value()) {
        let text = canonical::text(&value);
        let read: Value = serde_json::from_str(&text).expect("JSON");
        prop_assert_eq!(&read, &value);
        prop_assert_eq!(canonical::text(&read), text);
    }

    #[test]
    fn the_magnitude_of_a_float_decides_its_notation(float in any::<f64>()) {
        prop_assume!(float.is_finite());
        let text = canonical::text(&json!(float));
        prop_assert_eq!(text.parse::<f64>().expect("a float").to_bits(), float.to_bits());
        let size = float.abs();
        let is_plain = size == 0.0 || (1e-5..1e16).contains(&size);
        prop_assert_eq!(text.contains('e'), !is_plain, "{}", text);
        prop_assert_eq!(text.contains('.') || !is_plain, true, "{}", text);
        prop_assert_eq!(text.contains("e+"), size >= 1e16, "{}", text);
    }
}
