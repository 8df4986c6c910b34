//! Template strings and the values that contain them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::compile;
use super::data::Data;
use super::error::{EvalError, RenderError, SyntaxError};
use super::eval::Evaluation;
use super::mention::Mention;
use super::program::{Program, TemplateBody};
use super::scope::Scope;

/// A compiled template string. Clones share the compiled form.
#[derive(Clone)]
pub struct Template {
    program: Arc<Program>,
}

impl Template {
    /// Compiles a template string.
    ///
    /// A single newline after a sole expression, as left by a YAML block scalar, does not turn it
    /// into text.
    pub fn parse(source: &str) -> Result<Self, SyntaxError> {
        compile::template(source).map(Self::from_program)
    }

    /// Returns `true` if a string contains template delimiters (`{{`, `{%`, or `{#`).
    pub fn is_template(text: &str) -> bool {
        compile::has_delimiters(text)
    }

    pub fn source(&self) -> &str {
        &self.program.source
    }

    /// Returns the free names of the template: `ctx`, `workload`, a step, a key.
    ///
    /// Only names in the text count; names computed during rendering are unknown.
    pub fn names(&self) -> BTreeSet<String> {
        self.program.names.clone()
    }

    /// Returns the free names, each with the first key that follows it.
    pub fn mentions(&self) -> &BTreeSet<Mention> {
        &self.program.mentions
    }

    /// Returns `true` if the template is exactly one expression, which keeps its type.
    pub fn is_expression(&self) -> bool {
        matches!(self.program.body, TemplateBody::Sole(_))
    }

    /// Renders to JSON: the native value of a sole expression, or else a string.
    pub fn render(&self, scope: &Scope) -> Result<serde_json::Value, RenderError> {
        self.render_in(&mut Evaluation::new(scope))
    }

    /// Renders to a shared value, without copying values that a sole expression finds in the scope.
    pub fn evaluate(&self, scope: &Scope) -> Result<Data, RenderError> {
        self.evaluate_in(&mut Evaluation::new(scope)).map_err(|fault| self.name(fault))
    }

    pub(super) fn from_program(program: Program) -> Self {
        Self { program: Arc::new(program) }
    }

    pub(super) fn render_in(
        &self,
        run: &mut Evaluation<'_>,
    ) -> Result<serde_json::Value, RenderError> {
        let rendered = match &self.program.body {
            TemplateBody::Sole(expr) => run.eval(expr).and_then(|value| run.output.json(&value)),
            TemplateBody::Text(statements) => run.text(statements).map(serde_json::Value::String),
        };
        rendered.map_err(|fault| self.name(fault))
    }

    pub(super) fn evaluate_in(&self, run: &mut Evaluation<'_>) -> Result<Data, EvalError> {
        match &self.program.body {
            TemplateBody::Sole(expr) => run.eval(expr),
            TemplateBody::Text(statements) => run.text(statements).map(Data::from),
        }
    }

    pub(super) fn name(&self, fault: EvalError) -> RenderError {
        fault.in_template(&self.program.source)
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.source()).finish()
    }
}
