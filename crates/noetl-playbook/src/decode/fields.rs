//! The settings of a tool, wherever they are written.
//!
//! A task's mapping lies over the workbook tasks it refers to, and each of them over what some
//! authors put under its `spec`. The first of these layers that has a key decides.

use std::collections::HashSet;

use super::context::Context;
use super::cursor::Cursor;
use super::value;
use crate::template::{Template, ValueTemplate};
use crate::yaml::Key;

/// Keys of `tool.spec` that are about the run rather than settings of the tool.
const SPEC_OWN_KEYS: &[&str] = &["policy", "timeout", "result"];

/// Names of a tool's arguments: the one to write, then older ones.
pub(super) const INPUT_NAMES: &[&str] = &["input", "args", "with"];

/// One setting, and which layer it comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field<'a> {
    pub(super) key: &'a Key,
    pub(super) value: Cursor<'a>,
    layer: usize,
}

/// The `spec` of every layer that has one, with the layer it belongs to.
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

/// All settings, those of upper layers first. Arguments are listed once per layer, since they add
/// up; of every other key only the uppermost.
pub(super) fn collect<'a>(
    cx: &mut Context<'_>,
    layers: &'a [Cursor<'a>],
    specs: &'a [(usize, Cursor<'a>)],
) -> Vec<Field<'a>> {
    let mut fields: Vec<Field<'a>> = Vec::new();
    let mut seen: HashSet<&str> = HashSet::new();
    for (layer, at) in layers.iter().enumerate() {
        let own = at.names();
        for (key, value) in at.entries().filter(|(key, _)| &*key.name != "spec") {
            if INPUT_NAMES.contains(&&*key.name) || seen.insert(&key.name) {
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
            cx.older(spec.place(), message, "write them beside 'kind'");
            for (key, value) in nested {
                if INPUT_NAMES.contains(&&*key.name) || seen.insert(&key.name) {
                    fields.push(Field { key, value, layer });
                }
            }
        }
    }
    fields
}

/// The setting of this name, unless it is null.
pub(super) fn find<'a>(fields: &[Field<'a>], name: &str) -> Option<Cursor<'a>> {
    let mut fields = fields.iter();
    let found = fields.find(|field| &*field.key.name == name && !field.value.node.is_null());
    found.map(|field| field.value)
}

/// The tool's arguments: its own over the step's, and both over those of the workbook.
pub(super) fn input(
    cx: &mut Context<'_>,
    fields: &[Field<'_>],
    defaults: Option<Cursor<'_>>,
) -> ValueTemplate {
    let written = arguments(cx, fields);
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
    let mut taken: HashSet<&str> = HashSet::new();
    let mut kept: Vec<Vec<_>> = Vec::new();
    for layer in &layers {
        if !cx.is_map(layer, "name each argument: 'input: {name: value}'") {
            continue;
        }
        kept.push(layer.entries().filter(|(key, _)| taken.insert(&key.name)).collect());
    }
    let mut input = Vec::new();
    for (key, entry) in kept.iter().rev().flatten() {
        cx.names.define(&key.name);
        input.push((key.name.to_string(), value::decode(cx, entry)));
    }
    value::map(input)
}

/// The arguments of each layer, older names and all.
fn arguments<'a>(cx: &mut Context<'_>, fields: &[Field<'a>]) -> Vec<(usize, Cursor<'a>)> {
    let mut written: Vec<(usize, Cursor<'a>)> = Vec::new();
    let named = |field: &&Field<'a>| INPUT_NAMES.contains(&&*field.key.name);
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
