//! Translates an HTTP request: its body under the name of its encoding, its query as text.

use noetl_model::{Map, Value};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

use super::super::template_text::{is_template, single};
use super::{plain, strings};

/// Settings that may contain a body without naming its encoding.
const BODIES: [&str; 3] = ["payload", "data", "body"];

pub(super) fn lowered(config: &mut Map, input: &Map, is_rendered: bool) {
    let method = config.get("method").map_or_else(|| "GET".to_owned(), plain);
    let method = if is_template(&method) { method } else { method.trim().to_ascii_uppercase() };
    let is_bodiless = matches!(method.as_str(), "GET" | "HEAD");
    config.insert("method".to_owned(), method.into());
    let headers = strings(config.remove("headers"));
    let is_form = headers.iter().any(|(name, value)| {
        name.eq_ignore_ascii_case("content-type") && plain(value).contains("form-urlencoded")
    });
    if !headers.is_empty() {
        config.insert("headers".to_owned(), Value::Object(headers));
    }
    query_of_data(config, is_bodiless);
    params(config, is_rendered);
    body(config, input, is_form, is_bodiless);
    // Published workers behave like `auto` by default.
    if config.get("response_type").and_then(Value::as_str) == Some("auto") {
        config.remove("response_type");
    }
}

/// Moves `data.query` of a request without a body to the query parameters.
fn query_of_data(config: &mut Map, is_bodiless: bool) {
    let has_query = config.get("data").is_some_and(|data| data.get("query").is_some());
    if !is_bodiless || !has_query {
        return;
    }
    let data = config.remove("data");
    if let Some(Value::Object(query)) = data.and_then(|data| data.get("query").cloned()) {
        let params = config.entry("params").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(params) = params {
            params.extend(query);
        }
    }
}

/// Translates query parameters. Published workers accept text values and unique names only, so
/// repeated names, and parameters written as one text, are appended to the URL.
fn params(config: &mut Map, is_rendered: bool) {
    let Some(params) = config.remove("params") else { return };
    let is_plain = |map: &Map| !map.values().any(Value::is_array);
    match params {
        Value::Object(map) if is_plain(&map) || !is_rendered => {
            config.insert("params".to_owned(), Value::Object(strings(Some(Value::Object(map)))));
        }
        Value::Object(map) => {
            let pairs = map.iter().flat_map(|(name, value)| {
                let values = match value {
                    Value::Array(items) => items.as_slice(),
                    one => std::slice::from_ref(one),
                };
                let present = values.iter().filter(|value| !value.is_null());
                present.map(move |value| format!("{}={}", escaped(name), escaped(&plain(value))))
            });
            let query = pairs.collect::<Vec<_>>().join("&");
            add_to_address(config, &query);
        }
        Value::String(text) => add_to_address(config, text.trim_start_matches('?')),
        _ => {}
    }
}

fn add_to_address(config: &mut Map, query: &str) {
    if let Some(Value::String(url)) = config.get_mut("url")
        && !query.is_empty()
    {
        // A fragment is never sent.
        let (address, _) = url.split_once('#').unwrap_or((url, ""));
        let joint = if address.contains('?') { '&' } else { '?' };
        *url = format!("{address}{joint}{query}");
    }
}

fn body(config: &mut Map, input: &Map, is_form: bool, is_bodiless: bool) {
    if ["json", "form"].iter().any(|name| config.contains_key(*name)) {
        BODIES.iter().for_each(|name| drop(config.remove(*name)));
        return;
    }
    let written = BODIES.iter().find_map(|name| config.remove(*name));
    BODIES.iter().for_each(|name| drop(config.remove(*name)));
    match written {
        Some(Value::Object(form)) if is_form => {
            config.insert("form".to_owned(), Value::Object(strings(Some(Value::Object(form)))));
        }
        Some(Value::String(text)) if single(&text).is_none() || !is_template(&text) => {
            config.insert("body".to_owned(), text.into());
        }
        Some(Value::Null) | None => {
            if !is_bodiless && !input.is_empty() {
                config.insert("json".to_owned(), Value::Object(input.clone()));
            }
        }
        Some(other) => {
            config.insert("json".to_owned(), other);
        }
    }
}

/// Characters escaped in a query string: all but those that URLs never reserve.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Escapes a text for a query string by percent-encoding.
fn escaped(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, RESERVED)
}
