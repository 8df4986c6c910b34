//! Builds the request of a call.

use noetl_model::trace::{TRACEPARENT, TRACESTATE};
use noetl_model::{Failure, Map, TraceContext, Value};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Body, Method, Request, Url};

use crate::ToolCall;
use crate::config::{self, plain, type_name, wrong};

/// Settings that may contain the body. The first one that is present applies.
const BODY_KEYS: [&str; 5] = ["json", "payload", "data", "body", "form"];

const FORM: &str = "application/x-www-form-urlencoded";

/// Returns `true` if redirects are to be followed, which is the default.
pub(super) fn follows_redirects(config: &Map) -> Result<bool, Failure> {
    match config.get("follow_redirects") {
        None | Some(Value::Null) => Ok(true),
        Some(Value::Bool(follow)) => Ok(*follow),
        Some(other) => Err(wrong(format!(
            "`follow_redirects` must be true or false, not {}",
            type_name(other)
        ))),
    }
}

/// Builds the request of a call: address, headers, query, and body.
pub(super) fn build(call: &ToolCall) -> Result<Request, Failure> {
    let config = &call.config;
    let method = method(config)?;
    let mut url = url(config)?;
    if let Some(params) = config.get("params") {
        add_query(&mut url, "params", params)?;
    }
    let mut headers = headers(config)?;
    if let Some(trace) = &call.trace {
        add_trace(&mut headers, trace);
    }

    let bodiless = method == Method::GET || method == Method::HEAD;
    let body = match config::first(config, &BODY_KEYS) {
        Some(("data", Value::Object(data))) if bodiless && data.contains_key("query") => {
            add_query(&mut url, "data.query", &data["query"])?;
            None
        }
        Some((key, value)) => Some(body(key, value, &headers)?),
        None if bodiless || call.input.is_empty() => None,
        None => Some(json_body(&Value::Object(call.input.clone()))),
    };

    let mut request = Request::new(method, url);
    if let Some((text, content_type)) = body {
        headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(content_type));
        *request.body_mut() = Some(Body::from(text));
    }
    *request.headers_mut() = headers;
    Ok(request)
}

fn method(config: &Map) -> Result<Method, Failure> {
    let Some(name) = config::text(config, "method")? else {
        return Ok(Method::GET);
    };
    let name = name.trim().to_ascii_uppercase();
    Method::from_bytes(name.as_bytes())
        .map_err(|_| wrong(format!("`method` '{name}' is not an HTTP method")))
}

fn url(config: &Map) -> Result<Url, Failure> {
    let (key, text) = match config::first(config, &["url", "endpoint"]) {
        Some((key, Value::String(text))) => (key, text.trim()),
        Some((key, other)) => {
            return Err(wrong(format!("`{key}` must be a text, not {}", type_name(other))));
        }
        None => return Err(wrong("an http step needs a `url`")),
    };
    let url = Url::parse(text).map_err(|error| wrong(format!("`{key}` is not a URL: {error}")))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(wrong(format!("`{key}` must start with http:// or https://, not {other}:"))),
    }
}

/// Appends `params` to the query: a map of values or lists of values, or an encoded text.
fn add_query(url: &mut Url, key: &str, params: &Value) -> Result<(), Failure> {
    match params {
        Value::Null => {}
        Value::Object(params) if params.is_empty() => {}
        Value::Object(params) => {
            let mut query = url.query_pairs_mut();
            for (name, text) in pairs(params) {
                query.append_pair(name, &text);
            }
        }
        Value::String(text) => {
            let text = text.trim_start_matches('?');
            let joined = match url.query() {
                Some(query) if !query.is_empty() => format!("{query}&{text}"),
                _ => text.to_owned(),
            };
            url.set_query(Some(&joined));
        }
        other => {
            return Err(wrong(format!("`{key}` must be a map, not {}", type_name(other))));
        }
    }
    Ok(())
}

/// Iterates over the name-value pairs of a map. Lists repeat their name, and nulls are omitted.
fn pairs(map: &Map) -> impl Iterator<Item = (&str, String)> {
    map.iter().flat_map(|(name, value)| {
        let values = match value {
            Value::Array(items) => items.as_slice(),
            single => std::slice::from_ref(single),
        };
        let present = values.iter().filter(|value| !value.is_null());
        present.map(move |value| (name.as_str(), plain(value)))
    })
}

fn headers(config: &Map) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    for (name, text) in config::map(config, "headers")?.into_iter().flat_map(pairs) {
        // The message omits the value, which may be a token.
        let header = HeaderName::try_from(name)
            .map_err(|_| wrong(format!("`headers`: '{name}' is not a header name")))?;
        let mut value = HeaderValue::try_from(text).map_err(|_| {
            wrong(format!("`headers.{name}` holds characters that a header cannot carry"))
        })?;
        value.set_sensitive(header == AUTHORIZATION);
        headers.append(header, value);
    }
    Ok(headers)
}

/// Adds the trace headers, unless the step sets `traceparent` itself. Baggage is not forwarded to
/// the endpoints that steps call.
fn add_trace(headers: &mut HeaderMap, trace: &TraceContext) {
    let (parent, state) =
        (HeaderName::from_static(TRACEPARENT), HeaderName::from_static(TRACESTATE));
    if headers.contains_key(&parent) {
        return;
    }
    if let Ok(value) = HeaderValue::try_from(trace.parent()) {
        headers.insert(parent, value);
        // A `tracestate` has no meaning without its `traceparent`.
        let trace_state = trace.trace.state.as_deref().map(HeaderValue::try_from);
        match trace_state {
            Some(Ok(value)) => headers.insert(state, value),
            _ => headers.remove(state),
        };
    }
}

/// Returns the text of the body and its default content type.
fn body(key: &str, value: &Value, headers: &HeaderMap) -> Result<(String, &'static str), Failure> {
    let form_asked = headers
        .get(CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(FORM.as_bytes()));
    Ok(match (key, value) {
        ("form", Value::String(text)) => (text.clone(), FORM),
        ("form", Value::Object(map)) => (form_body(map), FORM),
        ("form", other) => {
            return Err(wrong(format!("`form` must be a map, not {}", type_name(other))));
        }
        ("data" | "payload" | "body", Value::Object(map)) if form_asked => (form_body(map), FORM),
        ("json", value) => json_body(value),
        (_, Value::String(text)) => {
            let looks_like_json = text.trim_start().starts_with(['{', '[']);
            let content_type = match looks_like_json {
                true => "application/json",
                false => "text/plain; charset=utf-8",
            };
            (text.clone(), content_type)
        }
        (_, value) => json_body(value),
    })
}

fn json_body(value: &Value) -> (String, &'static str) {
    (value.to_string(), "application/json")
}

fn form_body(map: &Map) -> String {
    // The query of a URL has the same encoding as a form.
    let mut url = Url::parse("http://form").expect("this text is a URL");
    url.query_pairs_mut().extend_pairs(pairs(map));
    url.query().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn query(base: &str, params: Value) -> String {
        let mut url = Url::parse(base).unwrap();
        add_query(&mut url, "params", &params).unwrap();
        url.to_string()
    }

    #[test]
    fn lists_repeat_their_parameter_and_nulls_are_omitted() {
        let params = json!({"a": [1, "zwei"], "b": null, "c": true, "d": {"e": 1}});
        assert_eq!(
            query("http://x/y?z=0", params),
            "http://x/y?z=0&a=1&a=zwei&c=true&d=%7B%22e%22%3A1%7D"
        );
        assert_eq!(query("http://x/", json!({})), "http://x/");
        assert_eq!(query("http://x/?a=1", json!("b=2")), "http://x/?a=1&b=2");
    }

    #[test]
    fn the_trace_header_is_sent_unless_the_step_sets_it() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let trace = TraceContext::read(parent, Some("a=b")).unwrap().with_baggage(Some("c=d"));
        let mut headers = HeaderMap::new();
        headers.insert("tracestate", HeaderValue::from_static("of=another"));
        add_trace(&mut headers, &trace);
        assert_eq!(
            (&headers["traceparent"], &headers["tracestate"]),
            (&parent.parse().unwrap(), &"a=b".parse().unwrap())
        );
        assert!(!headers.contains_key("baggage"), "it was not given to the far side");
        let own = HeaderValue::from_static("its own");
        let mut headers =
            HeaderMap::from_iter([(HeaderName::from_static(TRACEPARENT), own.clone())]);
        add_trace(&mut headers, &trace);
        assert_eq!((headers.len(), &headers["traceparent"]), (1, &own));
        let plain = TraceContext::read(parent, None).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("tracestate", HeaderValue::from_static("of=another"));
        add_trace(&mut headers, &plain);
        assert!(!headers.contains_key("tracestate"), "it is of another trace");
    }

    #[test]
    fn forms_are_encoded() {
        let Value::Object(map) = json!({"a b": "c&d", "e": [1, 2]}) else { unreachable!() };
        assert_eq!(form_body(&map), "a+b=c%26d&e=1&e=2");
    }
}
