//! Folds that start at a stored state.

use noetl_engine::replay::{
    Checksum, Projection, ReplayBase, ReplayScope, ReplaySeed, ReplayState, SeedError,
};
use noetl_model::Map;
use serde_json::json;

use crate::{event, fold, scope};

fn stored_seed(upcasters: Option<&str>) -> ReplaySeed {
    let mut state = fold(
        scope(),
        &[
            event(&json!({"event_id": 5, "event_type": "step.enter", "node_name": "a"})),
            event(&json!({"event_id": 9, "event_type": "command.issued", "command_id": 9})),
        ],
    );
    state.upcaster_registry_digest = upcasters.map(str::to_owned);
    state.seal();
    let mut meta = Map::new();
    meta.insert("rows".to_owned(), json!(2));
    ReplaySeed {
        aggregate_id: "execution/7/all".to_owned(),
        aggregate_type: "replay_state".to_owned(),
        version: 9,
        checksum: state.checksum.clone().expect("a sealed state"),
        state,
        meta,
    }
}

#[test]
fn a_seeded_state_records_its_start_and_continues() {
    let seed = stored_seed(None);
    let checksum = seed.checksum.clone();
    let asked =
        ReplayScope { tenant_id: "acme".to_owned(), projection: Projection::Loop, ..scope() };
    let mut state = ReplayState::begin(asked, seed.base(7, None).expect("a base"));
    assert_eq!((&state.checksum, &state.projection_checksums), (&None, &None));
    state.apply(&event(&json!({"event_id": 12, "event_type": "command.claimed", "command_id": 9})));
    state.seal();
    let value = serde_json::to_value(&state).expect("JSON");
    assert_eq!(value["tenant_id"], "acme");
    assert_eq!(value["projection"], "loop");
    assert_eq!(value["event_count"], 3);
    assert_eq!(value["commands"]["9"]["status"], "CLAIMED");
    assert_eq!(value["commands"]["9"]["issued_event_id"], 9);
    assert_eq!(
        value["replay_snapshot"],
        json!({
            "aggregate_id": "execution/7/all", "aggregate_type": "replay_state", "version": 9,
            "checksum": {"type": "sha256", "value": checksum.value}, "meta": {"rows": 2},
        })
    );
    // What it says about its beginning is part of its checksum.
    let mut bare = value.clone();
    bare.as_object_mut().expect("an object").remove("checksum");
    assert_eq!(Checksum::of_value(&bare), state.checksum.expect("a sealed state"));
    assert!(value.get("upcaster_registry_digest").is_none());
}

#[test]
fn a_base_without_its_name_has_the_checksum_of_the_full_fold() {
    let last = event(&json!({"event_id": 12, "event_type": "command.claimed", "command_id": 9}));
    let whole = fold(
        scope(),
        &[
            event(&json!({"event_id": 5, "event_type": "step.enter", "node_name": "a"})),
            event(&json!({"event_id": 9, "event_type": "command.issued", "command_id": 9})),
            last.clone(),
        ],
    );
    let base = ReplayBase { state: Some(stored_seed(None).state), ..ReplayBase::default() };
    let mut state = ReplayState::begin(scope(), base);
    state.apply(&last);
    state.seal();
    assert_eq!(state, whole);
}

#[test]
fn a_seed_with_other_upcasters_is_rejected() {
    assert_eq!(stored_seed(Some("d1")).base(7, Some("d2")), Err(SeedError::Upcasters));
    assert_eq!(stored_seed(None).base(7, Some("d2")), Err(SeedError::Upcasters));
    assert_eq!(stored_seed(Some("d1")).base(7, None), Err(SeedError::Upcasters));
    let base = stored_seed(Some("d1")).base(7, Some("d1")).expect("a base");
    let state = ReplayState::begin(scope(), base);
    assert_eq!(state.upcaster_registry_digest.as_deref(), Some("d1"));
}

#[test]
fn the_caller_s_upcasters_override_those_of_a_base() {
    let state = Some(stored_seed(Some("old")).state);
    let base = ReplayBase {
        state,
        upcaster_registry_digest: Some("new".to_owned()),
        ..ReplayBase::default()
    };
    let state = ReplayState::begin(scope(), base.clone());
    assert_eq!(state.upcaster_registry_digest.as_deref(), Some("new"));
    let silent = ReplayBase { upcaster_registry_digest: None, ..base };
    let state = ReplayState::begin(scope(), silent);
    assert_eq!(state.upcaster_registry_digest.as_deref(), Some("old"));
}

#[test]
fn a_seed_of_another_log_or_with_a_wrong_version_is_rejected() {
    let foreign = SeedError::Foreign { wanted: 8, found: 7 };
    assert_eq!(stored_seed(None).base(8, None), Err(foreign));
    assert_eq!(
        ReplaySeed { version: 8, ..stored_seed(None) }.base(7, None),
        Err(SeedError::Version)
    );
}

#[test]
fn a_seed_survives_a_json_round_trip() {
    let seed = stored_seed(Some("d"));
    let text = serde_json::to_string(&seed).expect("JSON");
    assert_eq!(serde_json::from_str::<ReplaySeed>(&text).expect("a seed"), seed);
}

#[test]
fn an_event_after_the_seal_removes_the_checksums() {
    let mut state = stored_seed(None).state;
    assert!(state.checksum.is_some() && state.projection_checksums.is_some());
    state.apply(&event(&json!({"event_id": 12})));
    assert!(state.checksum.is_none() && state.projection_checksums.is_none());
}
