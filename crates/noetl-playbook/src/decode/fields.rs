//! Collects the settings of a tool from all layers.
//!
//! A task's mapping overrides the workbook tasks it refers to. Within each layer, keys beside
//! `kind` override keys under `spec`, where some authors put them. The first layer that has a key
//! decides.

use std::collections::HashSet;

use noetl_template::{Template, ValueTemplate};

use super::context::Context;
use super::cursor::Cursor;
use super::value;
use crate::yaml::MapKey;

/// Keys of `tool.spec` that control the run and are not settings of the tool.
const SPEC_OWN_KEYS: &[&str] = &["policy", "timeout", "result"];

/// Returns the names of a tool's arguments: the current one, then deprecated ones. `data` counts
/// only for `python`, because tools that send data have a setting of that name.
pub(super) fn input_names(kind: Option<&str>) -> &'static [&'static str] {
    match kind {
        Some("python") => &["input", "args", "with", "data"],
        _ => &["input", "args", "with"],
    }
}

/// A setting and the layer it comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field<'a> {
    pub(super) key: &'a MapKey,
    pub(super) value: Cursor<'a>,
    layer: usize,
}

/// Returns the `spec` of every layer that has one, with the index of its layer.
pub(super) fn specs<'a>(
    cx: &mut Context<'_>,
    layers: &'a [Cursor<'a>],
) -> Vec<(usize, Cursor<'a>)> {
    let mut specs = Vec::new();
    for (layer, at) in layers.iter().enumerate() {
        if let Some(spec) = at.get("spec")
            && cx.is_map(&spec, "write 'spec: {timeout: 30s}'")
        {
            specs.push((layer, spec));
        }
    }
    specs
}

/// Collects all settings, upper layers first. Arguments are listed once per layer, because they
/// accumulate; of every other key, only the uppermost counts.
pub(super) fn collect<'a>(
    cx: &mut Context<'_>,
    layers: &'a [Cursor<'a>],
    specs: &'a [(usize, Cursor<'a>)],
    input_names: &[&str],
) -> Vec<Field<'a>> {
    let mut fields: Vec<Field<'a>> = Vec::new();
    let mut seen: HashSet<&str> = HashSet::new();
    for (layer, at) in layers.iter().enumerate() {
        let own = at.names();
        for (key, value) in at.entries().filter(|(key, _)| &*key.name != "spec") {
            if input_names.contains(&&*key.name) || seen.insert(&key.name) {
                fields.push(Field { key, value, layer });
            }
        }
        for (_, spec) in specs.iter().filter(|(of, _)| *of == layer) {
            let nested = spec.entries().filter(|(key, _)| !SPEC_OWN_KEYS.contains(&&*key.name));
            let nested: Vec<_> = nested.filter(|(key, _)| !own.contains(&*key.name)).collect();
            if nested.is_empty() {
                continue;
            }
            let names: Vec<&str> = nested.iter().map(|(key, _)| &*key.name).collect();
            let message = format!("settings of the tool stand under 'spec': {}", names.join(", "));
            cx.older(spec.position(), message, "write them beside 'kind'");
            for (key, value) in nested {
                if input_names.contains(&&*key.name) || seen.insert(&key.name) {
                    fields.push(Field { key, value, layer });
                }
            }
        }
    }
    fields
}

/// Returns the setting of this name, unless it is null.
pub(super) fn find<'a>(fields: &[Field<'a>], name: &str) -> Option<Cursor<'a>> {
    let mut fields = fields.iter();
    let matching = fields.find(|field| &*field.key.name == name && !field.value.node.is_null());
    matching.map(|field| field.value)
}

/// Merges the tool's arguments: its own override the step's, and both override those of the
/// workbook.
pub(super) fn input(
    cx: &mut Context<'_>,
    fields: &[Field<'_>],
    defaults: Option<Cursor<'_>>,
    names: &[&str],
) -> ValueTemplate {
    let written = arguments(cx, fields, names);
    let step = defaults.map(|defaults| (0, defaults));
    let own: Vec<_> = written.iter().filter(|(layer, _)| *layer == 0).copied().collect();
    let shared = written.iter().filter(|(layer, _)| *layer > 0).copied();
    let layers: Vec<Cursor<'_>> =
        own.into_iter().chain(step).chain(shared).map(|(_, input)| input).collect();
    if let [only] = layers.as_slice()
        && only.node.text().is_some_and(Template::is_template)
    {
        return value::decode(cx, only);
    }
    let mut seen: HashSet<&str> = HashSet::new();
    let mut entries: Vec<Vec<_>> = Vec::new();
    for layer in &layers {
        if !cx.is_map(layer, "name each argument: 'input: {name: value}'") {
            continue;
        }
        entries.push(layer.entries().filter(|(key, _)| seen.insert(&key.name)).collect());
    }
    let mut input = Vec::new();
    for (key, entry) in entries.iter().rev().flatten() {
        cx.names.define(&key.name);
        input.push((key.name.to_string(), value::decode(cx, entry)));
    }
    value::map(input)
}

/// Returns the arguments of each layer, including those under deprecated names.
fn arguments<'a>(
    cx: &mut Context<'_>,
    fields: &[Field<'a>],
    names: &[&str],
) -> Vec<(usize, Cursor<'a>)> {
    let mut written: Vec<(usize, Cursor<'a>)> = Vec::new();
    let named = |field: &&Field<'a>| names.contains(&&*field.key.name);
    for field in fields.iter().filter(named) {
        let name = &field.key.name;
        let place = (field.key.at, field.value.path);
        if written.iter().any(|(layer, _)| *layer == field.layer) {
            let message = format!("'{name}' repeats the tool's arguments");
            cx.error_at("E016", place, message, "keep everything under 'input'");
            continue;
        }
        if &**name != "input" {
            let message = format!("'{name}' is the older name of 'input'");
            cx.older(place, message, "write 'input'");
        }
        written.push((field.layer, field.value));
    }
    written.retain(|(_, input)| !input.node.is_null());
    written
}
