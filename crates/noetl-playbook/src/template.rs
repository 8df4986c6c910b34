//! Templates: compiled once, rendered in a [`Scope`], typed as their author meant.
//!
//! A string that is exactly one `{{ expression }}` keeps the expression's native type; any other
//! template is a string; a literal is never touched. Undefined is chainable and falsy, null is
//! defined and none. Work and output of one rendering are limited.
//!
//! The grammar, the values and many filters are minijinja's; names, operators, methods and limits
//! are decided here, because its virtual machine orders values of different types, looks methods
//! up before keys and lets one instruction allocate without bound. A template sees nothing but its
//! scope: no file, no clock, no other template.

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
mod slot;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;

pub use error::{RenderError, SyntaxError};
pub use guard::{Guard, truthy};
pub use json::{from_json, from_json_owned, to_json};
pub use keychain::Keychain;
pub use listed::items_of;
pub use loaded::{Loaded, Reach};
pub use mention::{Mention, Next};
pub use nested::ValueTemplate;
pub use reference::{blob_of_ref, is_reference, result_ref};
pub use scope::{Entropy, Identity, Iteration, Output, Scope, TaskScope};
pub use slot::{Away, Gathered, Part, Place, Slot, Source, exact_json};

use error::Fault;
use eval::Run;
use program::{Body, Program};

/// A value as templates see it: shared, so that results are never copied to be read.
pub type Data = minijinja::Value;

/// Named values in the order they were written, here or elsewhere.
pub type Names = IndexMap<Arc<str>, Slot>;

/// A string that holds template marks, compiled. Cloning it shares the compiled form.
#[derive(Clone)]
pub struct Template {
    program: Arc<Program>,
}

impl Template {
    /// Compiles a string.
    ///
    /// One newline after a sole expression, which a YAML block scalar leaves there, does not make
    /// it text.
    pub fn parse(source: &str) -> Result<Self, SyntaxError> {
        compile::template(source).map(Self::from_program)
    }

    /// Whether a string holds template marks (`{{`, `{%` or `{#`).
    pub fn is_template(text: &str) -> bool {
        ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark))
    }

    /// The text it was compiled from.
    pub fn source(&self) -> &str {
        &self.program.source
    }

    /// Names the text refers to that are not bound within it: `ctx`, `workload`, a step, a key.
    ///
    /// Only what is written counts; a name computed while rendering is not known here.
    pub fn names(&self) -> BTreeSet<String> {
        self.program.names.clone()
    }

    /// The same names with the first key that follows each.
    pub fn mentions(&self) -> &BTreeSet<Mention> {
        &self.program.mentions
    }

    /// Whether it is exactly one expression, which keeps its type.
    pub fn is_expression(&self) -> bool {
        matches!(self.program.body, Body::Sole(_))
    }

    /// Renders to JSON: the native value of a sole expression, else a string.
    pub fn render(&self, scope: &Scope) -> Result<serde_json::Value, RenderError> {
        self.render_in(&mut Run::new(scope))
    }

    /// Renders to a shared value, without copying what a sole expression found in the scope.
    pub fn evaluate(&self, scope: &Scope) -> Result<Data, RenderError> {
        self.evaluate_in(&mut Run::new(scope)).map_err(|fault| self.name(fault))
    }

    fn from_program(program: Program) -> Self {
        Self { program: Arc::new(program) }
    }

    fn render_in(&self, run: &mut Run<'_>) -> Result<serde_json::Value, RenderError> {
        let rendered = match &self.program.body {
            Body::Sole(expr) => run.eval(expr).and_then(|value| run.output.json(&value)),
            Body::Text(statements) => run.text(statements).map(serde_json::Value::String),
        };
        rendered.map_err(|fault| self.name(fault))
    }

    fn evaluate_in(&self, run: &mut Run<'_>) -> Result<Data, Fault> {
        match &self.program.body {
            Body::Sole(expr) => run.eval(expr),
            Body::Text(statements) => run.text(statements).map(Data::from),
        }
    }

    fn name(&self, fault: Fault) -> RenderError {
        fault.in_template(&self.program.source)
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.source()).finish()
    }
}
