//! Assignments: rendered together, then written.

use serde_json::{Map, Value};

use super::judge::Trouble;
use crate::document::{Assignment, SetScope};
use crate::template::{Names, Scope, Source, from_json};

/// An assignment whose value is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// Which names are written.
    pub scope: SetScope,
    /// The path below them, at least one name.
    pub path: Vec<String>,
    pub value: Value,
}

/// Renders assignments in one scope, so that none sees what another writes.
pub fn rendered(set: &[Assignment], scope: &Scope) -> Result<Vec<Written>, Trouble> {
    let render = |assignment: &Assignment| {
        let Assignment { scope: among, path, value } = assignment;
        let value = value.render_named(scope).map_err(|(below, error)| {
            let mut key = format!("set {}", assignment.target());
            if !below.is_empty() {
                key = format!("{key}.{below}");
            }
            Trouble::render(key, &error)
        })?;
        Ok(Written { scope: *among, path: path.clone(), value })
    };
    set.iter().map(render).collect()
}

/// Writes a value below names, with maps made on the way.
pub fn write(names: &mut Names, path: &[String], value: &Value) {
    let Some((first, rest)) = path.split_first() else { return };
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let slot = names.get_mut(first.as_str()).map(std::mem::take).unwrap_or_default();
    let slot = slot.written(&rest, Source::Held(from_json(value)));
    names.insert(first.as_str().into(), slot);
}

/// Notes a write among those that are reported, under its dotted path. What it hides is forgotten,
/// and it comes last, so that writing them in order gives what was seen.
pub fn note(writes: &mut Map<String, Value>, path: &[String], value: Value) {
    let key = path.join(".");
    let below = format!("{key}.");
    writes.retain(|written, _| *written != key && !written.starts_with(&below));
    writes.insert(key, value);
}
