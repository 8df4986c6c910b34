//! Wire format, compared with a snapshot: every route with its inputs and responses, and every body
//! with its fields and types. A removed or renamed line breaks clients; lines may be added.

use std::fmt::Write as _;

use noetl_test_app::TestApp;
use serde_json::Value;

use crate::api::get;

#[tokio::test]
async fn the_wire_format_matches_the_snapshot() {
    let app = TestApp::start(0).await;
    let (_, document) = get(&app, "/api/openapi.json").answer().await;
    app.close().await;
    let mut text = String::new();
    for (path, item) in members(&document["paths"]) {
        for (verb, operation) in members(item) {
            route(&mut text, &verb.to_uppercase(), path, operation);
        }
    }
    for (name, schema) in members(&document["components"]["schemas"]) {
        writeln!(text, "\n{name}").expect("memory");
        body(&mut text, schema);
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("wire");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("form", text));
}

fn members(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flatten()
}

fn route(text: &mut String, verb: &str, path: &str, operation: &Value) {
    writeln!(text, "{verb} {path}").expect("memory");
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    for parameter in parameters.filter(|one| one["in"] == "query") {
        let name = parameter["name"].as_str().unwrap_or_default();
        let mark = if parameter["required"] == true { "" } else { "?" };
        writeln!(text, "  {name}{mark}: {}", kind(&parameter["schema"])).expect("memory");
    }
    for (media, content) in members(&operation["requestBody"]["content"]) {
        writeln!(text, "  takes {media} {}", kind(&content["schema"])).expect("memory");
    }
    for (status, answer) in members(&operation["responses"]) {
        // Refusals have one body everywhere.
        if status.as_str() < "300" {
            let content = members(&answer["content"]);
            let content: Vec<String> =
                content.map(|(media, of)| format!("{media} {}", kind(&of["schema"]))).collect();
            writeln!(text, "  {status} {}", content.join(", ")).expect("memory");
        }
    }
}

fn body(text: &mut String, schema: &Value) {
    for part in schema["allOf"].as_array().into_iter().flatten() {
        if part["$ref"].is_string() {
            writeln!(text, "  and all of {}", kind(part)).expect("memory");
        }
        body(text, part);
    }
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (name, of) in members(&schema["properties"]) {
        let mark = if required.contains(&Value::from(name.as_str())) { "" } else { "?" };
        writeln!(text, "  {name}{mark}: {}", kind(of)).expect("memory");
    }
    if schema["properties"].is_null() && schema["allOf"].is_null() {
        writeln!(text, "  {}", kind(schema)).expect("memory");
    }
}

/// A type in few words.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        return name.rsplit('/').next().unwrap_or_default().to_owned();
    }
    for choice in ["oneOf", "anyOf", "allOf"] {
        if let Some(choices) = schema[choice].as_array() {
            let choices: Vec<String> = choices.iter().map(kind).collect();
            return choices.join(if choice == "allOf" { " & " } else { " | " });
        }
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        return values.join(" | ");
    }
    let named = match &schema["type"] {
        Value::String(one) => one.clone(),
        Value::Array(several) => {
            let several: Vec<&str> = several.iter().filter_map(Value::as_str).collect();
            several.join(" | ")
        }
        _ => "anything".to_owned(),
    };
    match schema["items"].is_null() {
        true => named,
        false => format!("{named} of {}", kind(&schema["items"])),
    }
}
