//! Applies directives: message headers that may override settings, as far as the document permits.
//!
//! A value that is not allowed is ignored, because a sender may not know the allowed ones.

use std::collections::BTreeMap;

use noetl_model::{Map, Value};

use super::settings::text;

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Directives {
    pub(super) playbook: Option<String>,
    pub(super) pool: Option<String>,
    pub(super) idempotency_key: Option<String>,
    pub(super) content_type: Option<String>,
    pub(super) schema_hint: Option<String>,
    /// Applied directives by the setting they control, recorded in the execution's payload.
    pub(super) applied: Map,
}

/// Returns the settings that the document's `headers` section lets these headers override. Header
/// names are lower case. Among directives for one setting, the last applicable one wins.
pub(super) fn decide(section: Option<&Value>, headers: &BTreeMap<String, String>) -> Directives {
    let mut decided = Directives::default();
    let mut by_priority = None;
    let directives = section.and_then(|section| section.get("directives")?.as_array());
    for directive in directives.into_iter().flatten() {
        let (Some(header), Some(controls)) =
            (text(directive, "header"), text(directive, "controls"))
        else {
            continue;
        };
        let Some(value) = headers.get(&header.to_lowercase()).filter(|value| !value.is_empty())
        else {
            continue;
        };
        let allowed = directive.get("allowed").and_then(Value::as_array);
        let allowed = allowed.filter(|allowed| !allowed.is_empty());
        let is_allowed =
            allowed.map(|allowed| allowed.iter().any(|one| one.as_str() == Some(value)));
        let mapped = directive.get("map").and_then(|map| text(map, value));
        let slot = match controls.as_str() {
            // A value that selects a playbook or pool has to be allowed by the document.
            "dispatch.playbook" if is_allowed == Some(true) => &mut decided.playbook,
            "dispatch.execution_pool" if is_allowed == Some(true) => &mut decided.pool,
            "priority" if mapped.is_some() && is_allowed != Some(false) => &mut by_priority,
            "idempotency_key" if is_allowed != Some(false) => &mut decided.idempotency_key,
            "content_type" if is_allowed != Some(false) => &mut decided.content_type,
            "schema_hint" if is_allowed != Some(false) => &mut decided.schema_hint,
            _ => continue,
        };
        let means = mapped.unwrap_or_else(|| value.clone());
        decided.applied.insert(controls, Value::from(means.clone()));
        *slot = Some(means);
    }
    decided.pool = decided.pool.or(by_priority);
    decided
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn decided(directives: Value, headers: &[(&str, &str)]) -> Directives {
        let section = json!({ "directives": directives });
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        decide(Some(&section), &headers.collect())
    }

    #[test]
    fn only_what_is_allowed_decides_where_work_goes() {
        let route = json!([
            {"header": "X-Route", "controls": "dispatch.playbook", "allowed": ["a/b", "c/d"]},
            {"header": "x-pool", "controls": "dispatch.execution_pool"},
        ]);
        let found = decided(route.clone(), &[("x-route", "c/d"), ("x-pool", "gpu")]);
        assert_eq!((found.playbook.as_deref(), found.pool.as_deref()), (Some("c/d"), None));
        assert_eq!(Value::Object(found.applied), json!({"dispatch.playbook": "c/d"}));
        for (value, why) in [("x/y", "not named"), ("", "empty"), ("A/B", "another case")] {
            assert_eq!(
                decided(route.clone(), &[("x-route", value)]),
                Directives::default(),
                "{why}"
            );
        }
    }

    #[test]
    fn a_named_pool_beats_a_priority_whatever_the_order() {
        let both = json!([
            {"header": "x-pool", "controls": "dispatch.execution_pool", "allowed": ["gpu"]},
            {"header": "x-prio", "controls": "priority", "map": {"high": "fast"}},
        ]);
        let pool = |headers: &[(&str, &str)]| decided(both.clone(), headers).pool;
        assert_eq!(pool(&[("x-prio", "high")]).as_deref(), Some("fast"));
        assert_eq!(pool(&[("x-prio", "high"), ("x-pool", "gpu")]).as_deref(), Some("gpu"));
        assert_eq!(pool(&[("x-prio", "low")]), None);
    }

    #[test]
    fn what_cannot_be_read_decides_nothing() {
        let headers = [("x-a", "1")];
        for broken in [
            json!(7),
            json!([7]),
            json!([{"header": "x-a"}]),
            json!([{"header": "x-a", "controls": "everything"}]),
            json!([{"header": "x-a", "controls": "priority", "map": {"1": 2}}]),
            json!([{"header": "x-a", "controls": "idempotency_key", "allowed": ["2"]}]),
        ] {
            assert_eq!(decided(broken.clone(), &headers), Directives::default(), "{broken}");
        }
        let key = json!([{"header": "x-a", "controls": "idempotency_key"}]);
        assert_eq!(decided(key, &headers).idempotency_key.as_deref(), Some("1"));
    }
}
