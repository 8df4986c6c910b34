//! Renders templates of a step. Errors name the path of the template within the step.

use noetl_model::Value;
use noetl_template::{RenderError, Scope, ValueTemplate};

/// Renders a template. An error names `at`, the template's path within its step.
pub(super) fn render(value: &ValueTemplate, scope: &Scope, at: &str) -> Result<Value, String> {
    value.render_named(scope).map_err(|(below, error)| {
        let dot = if below.is_empty() { "" } else { "." };
        format!("{error} at {at}{dot}{below}")
    })
}

/// Returns a function that adds the path of a template within its step to an error.
pub(super) fn with_path(place: &str) -> impl FnOnce(RenderError) -> String {
    move |error| format!("{error} at {place}")
}
