//! Translates Python code. Imports are written into the code, because published workers add none.

use noetl_model::{Map, Value};

use super::strings;

/// Modules that code may use without importing them.
const AT_HAND: [&str; 7] = ["json", "os", "re", "time", "math", "datetime", "uuid"];

/// Name under which published workers pass all arguments to the code.
const ALL: &str = "input_data";

pub(super) fn lowered(config: &mut Map, input: &Map) {
    source(config);
    if let Some(env) = config.remove("env") {
        config.insert("env".to_owned(), Value::Object(strings(Some(env))));
    }
    config.remove("raw");
    let libs = config.remove("libs");
    let Some(Value::String(code)) = config.get_mut("code") else { return };
    let mut before: Vec<String> = AT_HAND
        .iter()
        .filter(|module| uses(code, module))
        .map(|module| format!("import {module}"))
        .collect();
    if let Some(Value::Object(libs)) = libs {
        before.extend(libs.iter().filter_map(|(alias, spec)| import(alias, spec)));
    }
    // The map of all arguments would shadow an argument with its name.
    if input.contains_key(ALL) {
        before.push(format!("{ALL} = args['{ALL}']"));
    }
    if !before.is_empty() && !code.contains("from __future__") {
        // One line, so line numbers shift as little as possible.
        *code = format!("{}\n{code}", before.join("; "));
    }
}

/// Removes an argument before the code can see it.
pub(in super::super) fn hide_from_code(config: &mut Map, name: &str) {
    let Some(Value::String(code)) = config.get_mut("code") else { return };
    if !code.contains("from __future__") {
        *code = format!(
            "[a.pop('{name}', None) for a in (args, {ALL}) if isinstance(a, dict)]\n{code}"
        );
    }
}

/// Moves an inline program to `code`. A program at a path or URL keeps its location, under `uri`.
fn source(config: &mut Map) {
    let Some(Value::Object(script)) = config.get_mut("script") else { return };
    let Some(Value::Object(source)) = script.get_mut("source") else { return };
    if source.get("type").and_then(Value::as_str) == Some("inline") {
        let code = source.remove("code");
        config.remove("script");
        config.extend(code.map(|code| ("code".to_owned(), code)));
        return;
    }
    let place = ["path", "url"].iter().find_map(|name| source.remove(*name));
    if let Some(place) = place {
        script.entry("uri").or_insert(place);
    }
}

/// Returns `true` if the code uses an attribute of a module.
fn uses(code: &str, module: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    code.match_indices(module).any(|(at, _)| {
        let (before, after) = (&code[..at], &code[at + module.len()..]);
        !before.ends_with(is_name) && after.starts_with('.')
    })
}

fn import(alias: &str, spec: &Value) -> Option<String> {
    match spec {
        Value::String(module) => Some(format!("import {module} as {alias}")),
        Value::Object(parts) => {
            let (from, name) = (parts.get("from")?.as_str()?, parts.get("import")?.as_str()?);
            Some(format!("from {from} import {name} as {alias}"))
        }
        _ => None,
    }
}
