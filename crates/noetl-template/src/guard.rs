//! Conditions of arcs, steps, and rules.

use minijinja::value::ValueKind;

use super::error::{RenderError, SyntaxError};
use super::eval::Evaluation;
use super::program::{Expr, TemplateBody};
use super::scope::Scope;
use super::{Data, Template, compile};

/// A condition: a bare expression, a template, or a constant.
#[derive(Debug, Clone)]
pub enum Guard {
    /// A condition with a fixed outcome.
    Constant(bool),
    /// A template, evaluated natively and then tested with [`truthy`].
    Template(Template),
}

impl Guard {
    /// Compiles a condition. A bare expression needs no braces.
    ///
    /// Surrounding whitespace is insignificant. Several `{{ }}`, or text beside one, turn the
    /// condition into text, which is tested as rendered: `{{ a }} and {{ b }}` is never false.
    pub fn parse(source: &str) -> Result<Self, SyntaxError> {
        if source.trim().is_empty() {
            return Ok(Self::Constant(false));
        }
        let program = compile::condition(source)?;
        if let TemplateBody::Sole(Expr::Const(value)) = &program.body {
            return Ok(Self::Constant(truthy(value)));
        }
        Ok(Self::Template(Template::from_program(program)))
    }

    /// Returns `true` if the condition is true in a scope.
    pub fn holds(&self, scope: &Scope) -> Result<bool, RenderError> {
        match self {
            Self::Constant(answer) => Ok(*answer),
            Self::Template(template) => template
                .evaluate_in(&mut Evaluation::of_guard(scope))
                .map(|value| truthy(&value))
                .map_err(|fault| template.name(fault)),
        }
    }

    /// Returns the template of a condition that is not constant.
    pub fn template(&self) -> Option<&Template> {
        match self {
            Self::Constant(_) => None,
            Self::Template(template) => Some(template),
        }
    }
}

/// Texts that count as false in a condition.
const FALSE_WORDS: [&str; 6] = ["false", "no", "off", "none", "null", "0"];

/// Returns `true` if a value counts as true in a condition.
///
/// False values are false, zero, undefined, null, and the empty text, list, and map. Text that
/// spells a false value, in any case, is also false: authors compare rendered flags such as
/// `"false"`.
pub fn truthy(value: &Data) -> bool {
    match value.kind() {
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default().trim();
            let means_no = FALSE_WORDS.iter().any(|word| text.eq_ignore_ascii_case(word));
            !text.is_empty() && !means_no
        }
        _ => value.is_true(),
    }
}
