//! Templates: compiled once, rendered in a [`Scope`], typed as their author meant.
//!
//! A string that is exactly one `{{ expression }}` keeps the expression's native type; any other
//! template is a string; a literal is never touched. Undefined is chainable and falsy, null is
//! defined and none. Work and output of one rendering are limited.

use std::collections::BTreeMap;
use std::sync::Arc;

use indexmap::IndexMap;
use noetl_model::{CatalogId, ExecutionId, Failure, Timestamp};

/// A value as templates see it: shared, so that results are never copied to be read.
pub type Data = minijinja::Value;

/// Named values in the order they were written.
pub type Names = IndexMap<Arc<str>, Data>;

/// A string that holds template marks, compiled.
#[derive(Debug, Clone)]
pub struct Template {
    source: Arc<str>,
}

/// A JSON value whose strings may be templates, compiled.
#[derive(Debug, Clone)]
pub enum ValueTemplate {
    /// Holds no template anywhere.
    Literal(serde_json::Value),
    /// A string with template marks.
    Template(Template),
    /// A list with a template somewhere below.
    List(Vec<ValueTemplate>),
    /// A map with a template somewhere below, in document order.
    Map(Vec<(String, ValueTemplate)>),
}

/// A condition: a bare expression, a template, or a constant.
#[derive(Debug, Clone)]
pub enum Guard {
    /// The same answer always.
    Constant(bool),
    /// Evaluated natively, then judged by [`truthy`].
    Template(Template),
}

/// Text that is not a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// What is wrong with it.
    pub message: String,
    /// Line within the string, from 1.
    pub line: usize,
    /// Column within that line in characters, from 1; 1 where it is not known.
    pub column: usize,
}

/// A template that could not be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} in `{template}`")]
pub struct RenderError {
    /// What went wrong, with the values.
    pub message: String,
    /// The template's text, shortened.
    pub template: String,
}

/// What a template can see. Cheap to build: every part is shared.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// The execution's input.
    pub workload: Arc<Names>,
    /// Its durable variables.
    pub ctx: Arc<Names>,
    /// Newest result of each completed step, by name.
    pub results: Arc<Names>,
    /// Names this visit set with `step.*`.
    pub step: Arc<Names>,
    /// The completed step's output, in `set` and arcs.
    pub output: Option<Output>,
    /// `event.name`: `step.done` or `step.failed`, in `set` and arcs.
    pub event: Option<&'static str>,
    /// Data of the step whose arc led here, as `result` in a tool's `input`.
    pub previous: Option<Data>,
    /// The request's payload as `payload` and `input`; only while the workload is rendered.
    pub payload: Option<Data>,
    /// The playbook's root `spec`.
    pub spec: Option<Data>,
    /// Who is running.
    pub identity: Identity,
    /// What `env` shows: an allow-list.
    pub env: Arc<BTreeMap<String, String>>,
    /// What `now()` answers.
    pub now: Timestamp,
    /// What `uuid4()` is made from; the same number gives the same sequence.
    pub entropy: u64,
}

/// A step's output envelope.
#[derive(Debug, Clone)]
pub struct Output {
    /// The tool's data; none when it failed without any.
    pub data: Data,
    /// Why it failed.
    pub failure: Option<Arc<Failure>>,
}

/// Identity names: `execution_id`, `catalog_id`, `path`, `version`, `job`, `parent_execution_id`.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The execution.
    pub execution: ExecutionId,
    /// Its catalog entry.
    pub catalog: CatalogId,
    /// That entry's path.
    pub path: Arc<str>,
    /// That entry's version.
    pub version: u32,
    /// The execution that started it.
    pub parent: Option<ExecutionId>,
}

impl Default for Identity {
    fn default() -> Self {
        Self {
            execution: ExecutionId::new(0),
            catalog: CatalogId::new(0),
            path: Arc::from(""),
            version: 0,
            parent: None,
        }
    }
}

impl Template {
    /// Compiles a string.
    pub fn parse(source: &str) -> Result<Self, SyntaxError> {
        Ok(Self { source: Arc::from(source) })
    }

    /// Whether a string holds template marks (`{{`, `{%` or `{#`).
    pub fn is_template(text: &str) -> bool {
        ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark))
    }

    /// The text it was compiled from.
    pub fn source(&self) -> &str {
        &self.source
    }
}

impl Guard {
    /// Compiles a condition; a bare expression needs no braces.
    pub fn parse(source: &str) -> Result<Self, SyntaxError> {
        Template::parse(source).map(Self::Template)
    }
}
