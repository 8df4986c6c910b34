//! Assignments: rendered together, then applied.

use noetl_template::{Names, Scope, ValueSource, from_json};
use serde_json::{Map, Value};

use super::rules::RuleError;
use crate::assignment::{Assignment, SetScope};

/// An assignment with a rendered value.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluatedAssignment {
    /// Scope that the assignment writes to.
    pub scope: SetScope,
    /// Path below the scope. Has at least one name.
    pub path: Vec<String>,
    pub value: Value,
}

/// Renders assignments in the same scope, so that none sees the value of another.
pub fn rendered(set: &[Assignment], scope: &Scope) -> Result<Vec<EvaluatedAssignment>, RuleError> {
    let render = |assignment: &Assignment| {
        let Assignment { scope: among, path, value } = assignment;
        let value = value.render_named(scope).map_err(|(below, error)| {
            let mut key = format!("set {}", assignment.target());
            if !below.is_empty() {
                key = format!("{key}.{below}");
            }
            RuleError::render(key, &error)
        })?;
        Ok(EvaluatedAssignment { scope: *among, path: path.clone(), value })
    };
    set.iter().map(render).collect()
}

/// Writes a value at a path, and creates objects along the path as needed.
pub fn write(names: &mut Names, path: &[String], value: &Value) {
    let Some((first, rest)) = path.split_first() else { return };
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let slot = names.get_mut(first.as_str()).map(std::mem::take).unwrap_or_default();
    let slot = slot.written(&rest, ValueSource::Held(from_json(value)));
    names.insert(first.as_str().into(), slot);
}

/// Records a write to be reported, under its dotted path. Removes writes that it hides and appends
/// it, so that applying the writes in order yields the current values.
pub fn note(writes: &mut Map<String, Value>, path: &[String], value: Value) {
    let key = path.join(".");
    let below = format!("{key}.");
    writes.retain(|written, _| *written != key && !written.starts_with(&below));
    writes.insert(key, value);
}
