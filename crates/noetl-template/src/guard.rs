//! Conditions of arcs, steps, and rules.

use super::compile;
use super::data::truthy;
use super::error::{RenderError, SyntaxError};
use super::eval::Evaluation;
use super::program::{Expr, TemplateBody};
use super::scope::Scope;
use super::template::Template;

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
