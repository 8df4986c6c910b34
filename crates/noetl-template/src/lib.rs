//! Templates: compiled once, rendered in a [`Scope`], with typed results.
//!
//! A string that is exactly one `{{ expression }}` keeps the expression's native type. Any other
//! template renders to a string, and literals are left unchanged. Undefined is chainable and falsy;
//! null is defined and none. Work and output of a rendering are limited.
//!
//! The grammar, the values, and many filters are minijinja's. Names, operators, methods, and limits
//! are implemented here, because minijinja's virtual machine orders values of different types,
//! looks up methods before keys, and lets a single instruction allocate without bound. A template
//! sees only its scope: no file, no clock, no other template.

mod compile;
mod envelope;
mod error;
mod eval;
mod exec;
mod function;
mod guard;
mod higher;
mod iteration;
mod json;
mod keychain;
mod library;
mod limit;
mod listed;
mod loaded;
mod mention;
mod method;
mod nested;
mod object;
mod ops;
mod path;
mod program;
mod reference;
mod scope;
#[cfg(test)]
mod tests;
mod value_ref;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;

pub use error::{RenderError, SyntaxError};
pub use guard::{Guard, truthy};
pub use json::{from_json, from_json_owned, to_json};
pub use keychain::KeychainNames;
pub use listed::items_of;
pub use loaded::{LoadedValues, ValueLoader};
pub use mention::{Mention, MentionSuffix};
pub use nested::ValueTemplate;
pub use reference::{blob_of_ref, is_reference, result_ref};
pub use scope::{Entropy, ExecutionIdentity, Iteration, Scope, StepOutput, TaskScope};
pub use value_ref::{
    DeferredValue, ValueList, ValuePatch, ValueRef, ValueSlot, ValueSource, exact_json,
};

use error::EvalError;
use eval::Evaluation;
use program::{Program, TemplateBody};

/// A value as templates see it. Shared, so that reading a result never copies it.
pub type Data = minijinja::Value;

/// Values by name, in the order they were first written.
pub type Names = IndexMap<Arc<str>, ValueSlot>;

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
        ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark))
    }

    /// Returns the source text.
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

    fn from_program(program: Program) -> Self {
        Self { program: Arc::new(program) }
    }

    fn render_in(&self, run: &mut Evaluation<'_>) -> Result<serde_json::Value, RenderError> {
        let rendered = match &self.program.body {
            TemplateBody::Sole(expr) => run.eval(expr).and_then(|value| run.output.json(&value)),
            TemplateBody::Text(statements) => run.text(statements).map(serde_json::Value::String),
        };
        rendered.map_err(|fault| self.name(fault))
    }

    fn evaluate_in(&self, run: &mut Evaluation<'_>) -> Result<Data, EvalError> {
        match &self.program.body {
            TemplateBody::Sole(expr) => run.eval(expr),
            TemplateBody::Text(statements) => run.text(statements).map(Data::from),
        }
    }

    fn name(&self, fault: EvalError) -> RenderError {
        fault.in_template(&self.program.source)
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.source()).finish()
    }
}
