//! Directives: headers of a message that select its playbook, pool, dedup key, or content type.
//!
//! Only the directives that the document lists apply, and only for the values it allows. All others
//! are ignored, because a sender may not know the allowed ones.

use std::collections::HashMap;

use noetl_model::{Map, TraceContext, Value};
use serde_json::json;

use super::{Directive, Subscription};

/// Type and status of the event that records applied directives in the log of the execution.
pub const DIRECTIVES_APPLIED: (&str, &str) = ("subscription.message.directives_applied", "APPLIED");

/// Directives applied from a message's headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Directives {
    pub playbook: Option<String>,
    pub pool: Option<String>,
    pub idempotency_key: Option<String>,
    pub content_type: Option<String>,
    pub schema_hint: Option<String>,
    /// Applied directives in document order.
    pub applied: Vec<AppliedDirective>,
}

/// A directive whose header had an allowed value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedDirective {
    /// Name of the header, in lower case.
    pub header: String,
    /// Setting that the header controls.
    pub controls: String,
    pub value: String,
    /// Value of the setting: the header's value, or its replacement in `map`.
    pub setting: String,
}

impl Directives {
    /// Returns the applied settings, for the payload.
    pub(super) fn settings(&self) -> Map {
        let settings = self.applied.iter();
        settings.map(|one| (one.controls.clone(), Value::from(one.setting.as_str()))).collect()
    }

    /// Returns the payload of the event [`DIRECTIVES_APPLIED`].
    pub fn record(&self, message: &str, trace: Option<&TraceContext>) -> Value {
        let applied = self
            .applied
            .iter()
            .map(|one| json!({"header": one.header, "controls": one.controls, "value": one.value}));
        json!({
            "message_id": message,
            "applied": applied.collect::<Vec<_>>(),
            "route_override": {"playbook": self.playbook, "pool": self.pool},
            "trace": trace,
        })
    }
}

/// Evaluates the document's directives against headers by lower-case name. Among directives for one
/// setting, the last applicable one wins.
pub(super) fn evaluate(subscription: &Subscription, headers: &HashMap<String, &str>) -> Directives {
    let mut directives = Directives::default();
    if !subscription.trusts_headers() {
        return directives;
    }
    let mut by_priority = None;
    for directive in &subscription.headers.directives {
        let header = directive.header.to_lowercase();
        let value = headers.get(&header).map(|value| value.trim());
        let Some(value) = value.filter(|value| !value.is_empty()) else { continue };
        let Some(setting) = setting(directive, value) else { continue };
        let slot = match directive.controls.as_str() {
            "dispatch.playbook" => &mut directives.playbook,
            "dispatch.execution_pool" => &mut directives.pool,
            "priority" => &mut by_priority,
            "idempotency_key" => &mut directives.idempotency_key,
            "content_type" => &mut directives.content_type,
            "schema_hint" => &mut directives.schema_hint,
            _ => continue,
        };
        *slot = Some(setting.clone());
        let (controls, value) = (directive.controls.clone(), value.to_owned());
        directives.applied.push(AppliedDirective { header, controls, value, setting });
    }
    // An explicit pool takes precedence over one derived from a priority.
    directives.pool = directives.pool.or(by_priority);
    directives
}

/// Returns the setting that a header's value selects, or `None` if the value is not allowed.
fn setting(directive: &Directive, value: &str) -> Option<String> {
    let mapped = directive.map.get(value).and_then(Value::as_str).map(str::trim);
    let mapped = mapped.filter(|mapped| !mapped.is_empty());
    let is_listed = directive.allowed.iter().any(|allowed| allowed == value);
    let is_allowed = match directive.controls.as_str() {
        // A sender may select a target only with a value that the document lists.
        "dispatch.playbook" | "dispatch.execution_pool" => is_listed,
        "priority" => mapped.is_some() && (is_listed || directive.allowed.is_empty()),
        _ => is_listed || directive.allowed.is_empty(),
    };
    is_allowed.then(|| mapped.unwrap_or(value).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscription::headers_by_name;
    use crate::subscription::start::tests::subscription;

    const ROUTED: &str = "  headers:\n    directives:\n    \
        - {header: X-Route, controls: dispatch.playbook, allowed: [p/a, short, empty], map: {short: p/long, empty: ' '}}\n    \
        - {header: x-pool, controls: dispatch.execution_pool, allowed: [gpu]}\n    \
        - {header: x-priority, controls: priority, map: {high: fast}}\n    \
        - {header: x-key, controls: idempotency_key}\n    \
        - {header: x-type, controls: content_type, allowed: [text/plain]}\n    \
        - {header: x-schema, controls: schema_hint}\n";

    fn evaluated(more: &str, headers: &[(&str, &str)]) -> Directives {
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        evaluate(&subscription(more), &headers_by_name(&headers))
    }

    #[test]
    fn only_allowed_values_of_listed_headers_apply() {
        let route = |value| evaluated(ROUTED, &[("x-route", value)]).playbook;
        assert_eq!(route("p/a").as_deref(), Some("p/a"));
        assert_eq!(route("short").as_deref(), Some("p/long"));
        assert_eq!(route("empty").as_deref(), Some("empty"), "a blank replacement is none");
        for ignored in ["p/secret", "P/A", "p/long", ""] {
            assert_eq!(route(ignored), None, "{ignored}");
        }
        let other = evaluated(ROUTED, &[("x-type", "application/json"), ("x-pool", "cpu")]);
        assert_eq!(other, Directives::default());
        let unlisted = "  headers:\n    directives:\n    \
            - {header: x-route, controls: dispatch.playbook}\n    \
            - {header: x-pool, controls: dispatch.execution_pool, map: {a: gpu}}\n    \
            - {header: x-any, controls: everything}\n";
        let headers = [("x-route", "p/a"), ("x-pool", "a"), ("x-any", "1")];
        assert_eq!(evaluated(unlisted, &headers), Directives::default());
    }

    #[test]
    fn a_header_value_outside_the_allowed_list_is_ignored_even_if_it_is_mapped() {
        let mapped = "  headers: {directives: [{header: x-route, controls: dispatch.playbook, \
                      allowed: [p/long], map: {short: p/long}}]}\n";
        let route = |value| evaluated(mapped, &[("x-route", value)]).playbook;
        assert_eq!(route("short"), None, "the value is not listed");
        assert_eq!(route("p/long").as_deref(), Some("p/long"));
    }

    #[test]
    fn a_priority_requires_an_allowed_value() {
        let limited = "  headers: {directives: [{header: x-prio, controls: priority, \
                       allowed: [high], map: {high: fast, urgent: faster}}]}\n";
        let pool = |value| evaluated(limited, &[("x-prio", value)]).pool;
        assert_eq!(pool("high").as_deref(), Some("fast"));
        assert_eq!(pool("urgent"), None);
    }

    #[test]
    fn the_last_value_of_a_header_applies_regardless_of_case() {
        let directives = evaluated(ROUTED, &[("X-KEY", "one"), ("x-key", " two ")]);
        assert_eq!(directives.idempotency_key.as_deref(), Some("two"));
        let applied = AppliedDirective {
            header: "x-key".to_owned(),
            controls: "idempotency_key".to_owned(),
            value: "two".to_owned(),
            setting: "two".to_owned(),
        };
        assert_eq!(directives.applied, [applied]);
        let long = "k".repeat(5000);
        let directives = evaluated(ROUTED, &[("x-key", &long)]);
        assert_eq!(directives.idempotency_key, Some(long));
    }

    #[test]
    fn an_explicit_pool_overrides_a_priority() {
        let pool = |headers: &[(&str, &str)]| evaluated(ROUTED, headers).pool;
        assert_eq!(pool(&[("x-priority", "high")]).as_deref(), Some("fast"));
        assert_eq!(pool(&[("x-priority", "low")]), None);
        let both = [("x-pool", "gpu"), ("x-priority", "high")];
        assert_eq!(pool(&both).as_deref(), Some("gpu"));
    }
}
