//! Header directives: headers of a message that select its playbook, pool, deduplication key, or
//! trace. Applies only the directives that the document allows, and ignores all others.

use std::collections::HashMap;

use noetl_model::{Map, Value};
use noetl_playbook::subscription::{Directive, Propagate, Subscription};
use serde_json::json;

/// Maximum length of a directive's header value in bytes.
const VALUE_MAX: usize = 1024;

/// Directives applied from a message's headers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Directed {
    pub(crate) playbook: Option<String>,
    pub(crate) pool: Option<String>,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) schema_hint: Option<String>,
    /// Applied directives in the form recorded in the event log.
    pub(crate) applied: Vec<Value>,
    pub(crate) trace: Option<Map>,
}

/// Returns the headers by lower-case name. The last of several with the same name wins.
pub(crate) fn by_name(headers: &[(String, String)]) -> HashMap<String, &str> {
    headers.iter().map(|(name, value)| (name.to_lowercase(), value.as_str())).collect()
}

/// Evaluates the document's directives against these headers.
pub(crate) fn read(subscription: &Subscription, headers: &[(String, String)]) -> Directed {
    let headers = by_name(headers);
    let mut directed = Directed::default();
    let mut priority = None;
    for directive in &subscription.headers.directives {
        let value = headers.get(&directive.header.to_lowercase()).map(|value| value.trim());
        let value = value.filter(|value| (1..=VALUE_MAX).contains(&value.len()));
        let Some(value) = value else { continue };
        let Some(decided) = decided(directive, value) else { continue };
        let slot = match directive.controls.as_str() {
            "dispatch.playbook" => &mut directed.playbook,
            "dispatch.execution_pool" => &mut directed.pool,
            "priority" => &mut priority,
            "idempotency_key" => &mut directed.idempotency_key,
            "content_type" => &mut directed.content_type,
            "schema_hint" => &mut directed.schema_hint,
            _ => continue,
        };
        *slot = Some(decided);
        directed.applied.push(json!({
            "header": directive.header.to_lowercase(),
            "controls": directive.controls,
            "value": value,
        }));
    }
    // An explicit pool takes precedence over one derived from a priority.
    directed.pool = directed.pool.or(priority);
    directed.trace = match subscription.headers.propagate {
        Propagate::W3c => trace(&headers, &subscription.headers.baggage_allowlist),
        Propagate::None => None,
    };
    directed
}

/// Returns the mapped value of a directive, or `None` if the value is not allowed.
fn decided(directive: &Directive, value: &str) -> Option<String> {
    let mapped = directive.map.get(value).and_then(Value::as_str);
    let is_listed = |text: &str| directive.allowed.iter().any(|allowed| allowed == text);
    match directive.controls.as_str() {
        "priority" => mapped.map(str::to_owned),
        // A sender may select a target only if the document lists it.
        "dispatch.playbook" | "dispatch.execution_pool" => {
            let target = mapped.unwrap_or(value);
            (is_listed(value) || is_listed(target)).then(|| target.to_owned())
        }
        _ if directive.allowed.is_empty() || is_listed(value) => {
            Some(mapped.unwrap_or(value).to_owned())
        }
        _ => None,
    }
}

/// Returns the W3C trace context, or `None` if `traceparent` is missing or invalid.
fn trace(headers: &HashMap<String, &str>, baggage: &[String]) -> Option<Map> {
    let parent = headers.get("traceparent").map(|value| value.trim())?;
    if !is_traceparent(parent) {
        return None;
    }
    let mut trace = Map::new();
    trace.insert("traceparent".to_owned(), Value::from(parent));
    let state = headers.get("tracestate").map(|value| value.trim());
    if let Some(state) = state.filter(|state| (1..=VALUE_MAX).contains(&state.len())) {
        trace.insert("tracestate".to_owned(), Value::from(state));
    }
    if let Some(carried) = headers.get("baggage") {
        let is_allowed = |entry: &&str| {
            let name = entry.split(['=', ';']).next().unwrap_or_default().trim();
            baggage.iter().any(|allowed| allowed == name)
        };
        let entries = carried.split(',').map(str::trim).filter(is_allowed);
        let kept = entries.collect::<Vec<_>>().join(",");
        if (1..=8 * VALUE_MAX).contains(&kept.len()) {
            trace.insert("baggage".to_owned(), Value::from(kept));
        }
    }
    Some(trace)
}

/// Returns `true` if the text has the form of a `traceparent`: 2, 32, 16, and 2 hexadecimal digits,
/// separated by `-`.
fn is_traceparent(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let is_hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [2, 32, 16, 2] && parts.iter().all(|part| is_hex(part))
}

#[cfg(test)]
mod tests {
    use noetl_playbook::check_subscription;

    use super::*;

    fn subscription(headers: &str) -> Subscription {
        let text = format!(
            "apiVersion: noetl.io/v1\nkind: Subscription\nmetadata: {{name: a, path: s/a}}\nspec:\n  \
             source: nats\n  mode: pull\n  stream: a\n  dispatch: {{playbook: p/usual}}\n{headers}"
        );
        let checked = check_subscription(&text);
        checked.subscription.unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
    }

    fn directed(document: &str, headers: &[(&str, &str)]) -> Directed {
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        read(&subscription(document), &headers)
    }

    const ROUTED: &str = "  headers:\n    directives:\n    \
        - {header: X-Route, controls: dispatch.playbook, allowed: [p/a, short], map: {short: p/long}}\n    \
        - {header: x-pool, controls: dispatch.execution_pool, allowed: [gpu]}\n    \
        - {header: x-priority, controls: priority, map: {high: fast}}\n    \
        - {header: x-key, controls: idempotency_key}\n    \
        - {header: x-type, controls: content_type, allowed: [text/plain]}\n    \
        - {header: x-schema, controls: schema_hint}\n";

    #[test]
    fn only_what_is_allowed_counts() {
        let route = |value| directed(ROUTED, &[("x-route", value)]).playbook;
        assert_eq!(route("p/a").as_deref(), Some("p/a"));
        assert_eq!(route("short").as_deref(), Some("p/long"));
        assert_eq!(route("p/secret"), None);
        assert_eq!(route("p/long"), None, "what is mapped to is not what may be written");
        assert_eq!(route(""), None);
        let other = directed(ROUTED, &[("x-type", "application/json"), ("x-pool", "cpu")]);
        assert_eq!(other, Directed::default());
    }

    #[test]
    fn the_last_value_wins_whatever_the_case_of_its_name() {
        let found = directed(ROUTED, &[("X-KEY", "one"), ("x-key", " two ")]);
        assert_eq!(found.idempotency_key.as_deref(), Some("two"));
        assert_eq!(found.applied.len(), 1);
        assert_eq!(found.applied[0]["header"], "x-key");
        let long = "k".repeat(VALUE_MAX + 1);
        assert_eq!(directed(ROUTED, &[("x-key", &long)]), Directed::default());
    }

    #[test]
    fn a_named_pool_beats_a_priority() {
        let pool = |headers: &[(&str, &str)]| directed(ROUTED, headers).pool;
        assert_eq!(pool(&[("x-priority", "high")]).as_deref(), Some("fast"));
        assert_eq!(pool(&[("x-priority", "low")]), None);
        let both = [("x-pool", "gpu"), ("x-priority", "high")];
        assert_eq!(pool(&both).as_deref(), Some("gpu"));
    }

    #[test]
    fn a_trace_goes_on_with_the_baggage_that_is_allowed() {
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let headers = [
            ("Traceparent", parent),
            ("tracestate", "a=1"),
            ("baggage", "user=ada;p=1, secret=x,tier = gold"),
        ];
        let document = "  headers: {trace: {propagate: w3c, baggage_allowlist: [user, tier]}}\n";
        let trace = directed(document, &headers).trace.expect("a trace");
        assert_eq!(trace["traceparent"], parent);
        assert_eq!(trace["tracestate"], "a=1");
        assert_eq!(trace["baggage"], "user=ada;p=1,tier = gold");
        let none = "  headers: {trace: {propagate: none}}\n";
        assert_eq!(directed(none, &headers).trace, None);
        for wrong in ["", "00-abc-def-01", &parent.replace('0', "x")] {
            assert_eq!(directed(document, &[("traceparent", wrong)]).trace, None, "{wrong}");
        }
        let bare = directed(document, &headers[..1]).trace.expect("a trace");
        assert_eq!(bare.len(), 1);
    }
}
