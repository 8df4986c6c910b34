//! JSON values that contain templates.

use serde_json::{Map, Value};

use super::error::{RenderError, SyntaxError};
use super::eval::Evaluation;
use super::scope::Scope;
use super::template::Template;

/// A JSON value whose strings may be compiled templates.
#[derive(Debug, Clone)]
pub enum ValueTemplate {
    /// A value without any template.
    Literal(Value),
    /// A string that is a template.
    Template(Template),
    /// A list that contains a template at any depth.
    List(Vec<ValueTemplate>),
    /// A map that contains a template at any depth, in document order.
    Map(Vec<(String, ValueTemplate)>),
}

impl ValueTemplate {
    /// Compiles every string with template delimiters. Keys are literal.
    pub fn compile(value: Value) -> Result<Self, SyntaxError> {
        match value {
            Value::String(text) if Template::is_template(&text) => {
                Template::parse(&text).map(Self::Template)
            }
            Value::Array(items) if items.iter().any(holds_template) => {
                items.into_iter().map(Self::compile).collect::<Result<_, _>>().map(Self::List)
            }
            Value::Object(map) if map.values().any(holds_template) => map
                .into_iter()
                .map(|(key, value)| Ok((key, Self::compile(value)?)))
                .collect::<Result<_, _>>()
                .map(Self::Map),
            literal => Ok(Self::Literal(literal)),
        }
    }

    /// Builds a mapping of compiled values. Yields a literal if all values are literals.
    pub fn map(entries: Vec<(String, Self)>) -> Self {
        if !entries.iter().all(|(_, value)| value.is_literal()) {
            return Self::Map(entries);
        }
        let literal = |(name, value)| match value {
            Self::Literal(value) => Some((name, value)),
            Self::Template(_) | Self::List(_) | Self::Map(_) => None,
        };
        Self::Literal(Value::Object(entries.into_iter().filter_map(literal).collect()))
    }

    /// Returns `true` if the value contains no template.
    pub fn is_literal(&self) -> bool {
        matches!(self, Self::Literal(_))
    }

    /// Returns every template in the value.
    pub fn templates(&self) -> Vec<&Template> {
        match self {
            Self::Literal(_) => Vec::new(),
            Self::Template(template) => vec![template],
            Self::List(items) => items.iter().flat_map(Self::templates).collect(),
            Self::Map(entries) => entries.iter().flat_map(|(_, item)| item.templates()).collect(),
        }
    }

    /// Renders every template in the same scope. The limits apply to all of them together.
    pub fn render(&self, scope: &Scope) -> Result<Value, RenderError> {
        self.render_in(&mut Evaluation::new(scope), &mut Vec::new())
    }

    /// Like [`render`](Self::render), but returns an error with the dotted path to its template.
    pub fn render_named(&self, scope: &Scope) -> Result<Value, (String, RenderError)> {
        let mut path = Vec::new();
        self.render_in(&mut Evaluation::new(scope), &mut path)
            .map_err(|error| (path.join("."), error))
    }

    /// Renders the value. After an error, `path` leads to the failed template.
    fn render_in(
        &self,
        run: &mut Evaluation<'_>,
        path: &mut Vec<String>,
    ) -> Result<Value, RenderError> {
        match self {
            Self::Literal(value) => Ok(value.clone()),
            Self::Template(template) => template.render_in(run),
            Self::List(items) => {
                let mut rendered = Vec::with_capacity(items.len());
                for (place, item) in items.iter().enumerate() {
                    rendered.push(item.render_below(run, path, || place.to_string())?);
                }
                Ok(Value::Array(rendered))
            }
            Self::Map(entries) => {
                let mut rendered = Map::new();
                for (key, value) in entries {
                    let value = value.render_below(run, path, || key.clone())?;
                    rendered.insert(key.clone(), value);
                }
                Ok(Value::Object(rendered))
            }
        }
    }

    fn render_below(
        &self,
        run: &mut Evaluation<'_>,
        path: &mut Vec<String>,
        key: impl FnOnce() -> String,
    ) -> Result<Value, RenderError> {
        if let Self::Literal(value) = self {
            return Ok(value.clone());
        }
        path.push(key());
        let rendered = self.render_in(run, path)?;
        path.pop();
        Ok(rendered)
    }
}

fn holds_template(value: &Value) -> bool {
    match value {
        Value::String(text) => Template::is_template(text),
        Value::Array(items) => items.iter().any(holds_template),
        Value::Object(map) => map.values().any(holds_template),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
