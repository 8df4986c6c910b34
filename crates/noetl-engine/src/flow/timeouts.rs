//! Limits of a step that are rendered when the step is entered: timeouts and frame sizes.

use std::time::Duration;

use noetl_model::loops::FrameSizes;
use noetl_model::{Failure, FailureKind, Value};
use noetl_playbook::document::{FrameSpec, Step, TimeLimit};
use noetl_playbook::{seconds_in, timeout_of};
use noetl_template::{Scope, ValueTemplate};

use super::render;

/// Returns the timeout of a step run: the shortest of the fixed and the rendered limits.
pub(super) fn step_timeout(step: &Step, scope: &Scope) -> Result<Option<Duration>, Failure> {
    let mut shortest = step.timeout;
    for limit in &step.limits {
        let rendered = resolve_timeout(limit, &step.name, scope)?;
        shortest = [shortest, rendered].into_iter().flatten().min();
    }
    Ok(shortest)
}

/// Returns the duration of a rendered limit, or `None` if a value is missing.
pub(super) fn resolve_timeout(
    limit: &TimeLimit,
    step: &str,
    scope: &Scope,
) -> Result<Option<Duration>, Failure> {
    let what = "a length of time up to a year, such as 30, 0.5 or 5m";
    let read = |value: &Value| {
        let seconds = value.as_f64().or_else(|| seconds_in(value.as_str()?));
        seconds.and_then(timeout_of)
    };
    rendered(&limit.value, step, limit.key, what, scope, read)
}

/// Returns the sizes of a loop's frames, or `None` if no template defines one of them.
pub(super) fn frame_sizes(
    frame: &FrameSpec,
    step: &str,
    scope: &Scope,
) -> Result<Option<FrameSizes>, Failure> {
    let mut sizes = frame.sizes;
    for (size, written) in &frame.templates {
        let key = format!("loop.spec.frame.{}", size.key());
        let what = "a whole number from 1";
        let read = |value: &Value| {
            let number = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())?;
            u32::try_from(number).ok().filter(|number| *number > 0)
        };
        if let Some(number) = rendered(written, step, &key, what, scope, read)? {
            *size.size_mut(&mut sizes) = number;
        }
    }
    Ok((!frame.templates.is_empty()).then_some(sizes))
}

/// Renders a template of a step and converts the value with `read`. Returns `None` if a value is
/// missing.
fn rendered<T>(
    written: &ValueTemplate,
    step: &str,
    key: &str,
    what: &str,
    scope: &Scope,
    read: impl Fn(&Value) -> Option<T>,
) -> Result<Option<T>, Failure> {
    let value = render::render(written, scope, key);
    if !scope.reach.needed().is_empty() {
        return Ok(None);
    }
    if let Some(lost) = scope.reach.lost() {
        return Err(Failure::new(FailureKind::TemplateError, lost));
    }
    let value = value.map_err(|message| Failure::new(FailureKind::TemplateError, message))?;
    if let Some(read) = read(&value) {
        return Ok(Some(read));
    }
    let expression = match written {
        ValueTemplate::Template(template) => template.source().trim().to_owned(),
        ValueTemplate::Literal(_) | ValueTemplate::List(_) | ValueTemplate::Map(_) => {
            value.to_string()
        }
    };
    let message =
        format!("{key} of step '{step}' must be {what}, and {expression} gives {}", kind(&value));
    Err(Failure::new(FailureKind::Config, message))
}

/// Describes a value's type for an error message, with the value itself if it is short.
fn kind(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(truth) => format!("the truth value {truth}"),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) if text.chars().count() <= 40 => format!("the text '{text}'"),
        Value::String(_) => "a long text".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a map".to_owned(),
    }
}
