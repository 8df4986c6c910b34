//! Renders what a step says; what cannot be rendered is named by its place in the step.

use noetl_model::Value;
use noetl_playbook::template::{RenderError, Scope, ValueTemplate};

/// A value that stands at this place of its step.
pub(super) fn render(value: &ValueTemplate, scope: &Scope, at: &str) -> Result<Value, String> {
    value.render_named(scope).map_err(|(below, error)| {
        let dot = if below.is_empty() { "" } else { "." };
        format!("{error} at {at}{dot}{below}")
    })
}

/// An error of what stands at this place of its step.
pub(super) fn at(place: &str) -> impl FnOnce(RenderError) -> String {
    move |error| format!("{error} at {place}")
}
