//! Values that are named and not in memory.

use std::collections::BTreeSet;
use std::sync::Arc;

use noetl_model::Seq;
use noetl_model::event::BlobRef;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{render_in, scope};
use crate::{
    LoadedValues, Mention, MentionSuffix, Names, Scope, StepOutput, Template, ValueLoader,
    ValueRef, ValueSlot, ValueSource, exact_json, from_json,
};

fn event(seq: u64, key: Option<&str>) -> ValueSlot {
    ValueSlot::away(ValueSource::Event { seq: Seq(seq), key: key.map(Arc::from), bytes: 7 })
}

fn names(slots: Vec<(&str, ValueSlot)>) -> Arc<Names> {
    Arc::new(slots.into_iter().map(|(name, slot)| (Arc::from(name), slot)).collect())
}

fn blob(fields: Value) -> ValueSlot {
    let reference =
        BlobRef { digest: Arc::from("d"), bytes: 9, media_type: Arc::from("application/json") };
    ValueSlot::away(ValueSource::Blob {
        reference: Arc::new(reference),
        fields: from_json(&fields),
    })
}

fn seqs(scope: &Scope) -> Vec<u64> {
    let seq = |place: ValueRef| match place {
        ValueRef::Event { seq, .. } => seq.0,
        ValueRef::Blob(_) => 0,
    };
    scope.reach.needed().into_iter().map(seq).collect()
}

#[test]
fn one_rendering_requests_all_values_it_reads_and_no_others() {
    let scope = Scope {
        ctx: names(vec![("a", event(1, Some("a"))), ("unused", event(2, Some("u")))]),
        results: names(vec![("r", event(3, None)), ("s", event(4, None))]),
        workload: names(vec![("w", event(5, Some("w"))), ("v", event(5, Some("v")))]),
        ..Scope::default()
    };
    render_in(&scope, "{{ a.x }} {{ r }} {{ steps.r.y }} {{ workload.w }} {{ ctx.v }}");
    assert_eq!(seqs(&scope), [1, 3, 5]);
}

#[test]
fn rendering_a_scope_loads_its_values_and_counting_them_does_not() {
    let ctx = names(vec![("a", event(1, Some("a"))), ("b", event(2, Some("b")))]);
    let scope = |ctx: &Arc<Names>| Scope { ctx: ctx.clone(), ..Scope::default() };
    let keys = scope(&ctx);
    assert_eq!(render_in(&keys, "{{ ctx | length }}"), json!(2));
    assert!(seqs(&keys).is_empty());
    let whole = scope(&ctx);
    render_in(&whole, "{{ ctx }}");
    assert_eq!(seqs(&whole), [1, 2]);
}

#[test]
fn loaded_values_behave_like_inline_values() {
    let mut loaded = LoadedValues::default();
    loaded.insert_event(Seq(3), [(None, from_json(&json!({"n": 2.0, "z": 1, "a": 2})))]);
    loaded.insert_blob(Arc::from("d"), from_json(&json!([1, 2])));
    let scope = Scope {
        results: names(vec![("r", event(3, None)), ("b", blob(json!(null)))]),
        previous: Some(event(3, None)),
        reach: ValueLoader::new(Arc::new(loaded)),
        ..Scope::default()
    };
    assert_eq!(render_in(&scope, "{{ r }}").to_string(), r#"{"n":2.0,"z":1,"a":2}"#);
    assert_eq!(render_in(&scope, "{{ r.data.z + result.a }}"), json!(3));
    assert_eq!(render_in(&scope, "{{ b | sum }}"), json!(3));
    assert!(seqs(&scope).is_empty() && scope.reach.lost().is_none());
}

#[test]
fn fields_of_a_blob_are_available_without_loading_it() {
    let output = StepOutput {
        data: blob(json!({"rows": 7, "data": 1})),
        failure: None,
        envelope_first: false,
    };
    let scope = Scope {
        output: Some(output),
        results: names(vec![("b", blob(json!({"rows": 7})))]),
        ..Scope::default()
    };
    assert_eq!(render_in(&scope, "{{ output.rows + b.rows + steps.b.rows }}"), json!(21));
    assert!(scope.reach.needed().is_empty());
    render_in(&scope, "{{ output.data }}");
    assert_eq!(scope.reach.needed().len(), 1);
}

#[test]
fn an_unreadable_value_is_an_error_and_not_requested_again() {
    let mut loaded = LoadedValues::default();
    loaded.insert_lost(ValueRef::Event { seq: Seq(1), bytes: 0 }, "the blob is gone".into());
    loaded.insert_event(Seq(2), []);
    let reach = ValueLoader::new(Arc::new(loaded));
    for seq in [1, 2] {
        let ctx = names(vec![("a", event(seq, Some("a")))]);
        let scope = Scope { ctx, reach: reach.clone(), ..Scope::default() };
        render_in(&scope, "{{ a }}");
        assert!(scope.reach.needed().is_empty());
        assert_eq!(scope.reach.lost().as_deref(), Some("the blob is gone"));
    }
}

#[test]
fn a_template_lists_the_names_in_its_text() {
    let template = Template::parse(
        "{% set own = 1 %}{{ own }}{{ ctx.a.b }}{{ ctx[own] }}{{ steps['p/q'].x }}{{ big | length }}",
    );
    let mention = |name: &str, next| Mention { name: Arc::from(name), next };
    let expected: BTreeSet<Mention> = [
        mention("ctx", MentionSuffix::Key(Arc::from("a"))),
        mention("ctx", MentionSuffix::Computed),
        mention("steps", MentionSuffix::Key(Arc::from("p/q"))),
        mention("big", MentionSuffix::Nothing),
    ]
    .into();
    assert_eq!(*template.unwrap().mentions(), expected);
    assert_eq!(render_in(&scope(json!({})), "{{ ctx['a'] }}"), json!(null));
}

/// Generates writes of large and small values at paths.
fn writes() -> impl Strategy<Value = Vec<(Vec<&'static str>, Value, bool)>> {
    let path = prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 0..4);
    let value = prop_oneof![
        Just(json!(1)),
        Just(json!({"b": 1, "a": {"c": 2}})),
        Just(json!({"z": [1, {"a": 1.0}]})),
    ];
    prop::collection::vec((path, value, any::<bool>()), 1..12)
}

proptest! {
    /// Deferred and inline writes give the same value, with its keys in the same order.
    #[test]
    fn deferred_and_inline_writes_lead_to_the_same_value(writes in writes()) {
        let (mut inline, mut mixed) = (ValueSlot::default(), ValueSlot::default());
        let mut loaded = LoadedValues::default();
        for (index, (path, value, away)) in writes.iter().enumerate() {
            let seq = Seq(u64::try_from(index).unwrap());
            let data = from_json(value);
            loaded.insert_event(seq, [(None, data.clone())]);
            inline = inline.written(path, ValueSource::Held(data.clone()));
            let source = ValueSource::Event { seq, key: None, bytes: 1 };
            mixed = mixed.written(path, if *away { source } else { ValueSource::Held(data) });
        }
        let ValueSlot::Held(expected) = &inline else { panic!("nothing was away") };
        let actual = ValueLoader::new(Arc::new(loaded)).data(&mixed);
        prop_assert_eq!(exact_json(&actual).to_string(), exact_json(expected).to_string());
        if let ValueSlot::Away(away) = &mixed {
            // One per path that can be written, and the value that was there before.
            prop_assert!(away.parts.len() <= 1 + 3 + 9 + 27);
        }
    }
}
