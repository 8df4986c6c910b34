//! Syntax tree of a document.

use std::rc::Rc;

/// Position in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Line number, from 1.
    pub(crate) line: u32,
    /// Column in characters, from 1.
    pub(crate) column: u32,
}

impl Place {
    /// Position of the first character.
    pub(crate) const START: Self = Self { line: 1, column: 1 };
}

/// A value of the document. Cheap to clone, because its content is shared, as aliases require.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) at: Place,
}

/// Content of a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// `null`, `~`, or an empty value.
    Null,
    Bool(bool),
    /// An integer that fits `i64`.
    Int(i64),
    /// An integer above `i64::MAX`.
    Large(u64),
    /// Any other number, including `.inf` and `.nan`.
    Float(f64),
    /// Text with escapes resolved, and its style.
    Text(Rc<str>, Style),
    List(Rc<Vec<Node>>),
    /// A mapping in document order, without duplicate keys.
    Map(Rc<Vec<(Key, Node)>>),
}

/// Style of a text, which determines how positions inside it map to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Unquoted, on one or more lines.
    Plain,
    /// Single-quoted, as in `'…'`.
    Single,
    /// Double-quoted, as in `"…"`.
    Double,
    /// Block style with `|`, which keeps line breaks.
    Literal,
    /// Block style with `>`, which folds line breaks.
    Folded,
}

/// A key of a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) name: Rc<str>,
    pub(crate) at: Place,
}

impl Node {
    /// Returns the text, or `None` if the value is not text.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text, _) => Some(text),
            _ => None,
        }
    }

    /// Returns `true` if the value is `null` or empty.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self.kind, Kind::Null)
    }

    /// Returns the entries, or `None` if the value is not a mapping.
    pub(crate) fn entries(&self) -> Option<&[(Key, Node)]> {
        match &self.kind {
            Kind::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// Returns the items, or `None` if the value is not a list.
    pub(crate) fn items(&self) -> Option<&[Node]> {
        match &self.kind {
            Kind::List(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the value of a key, or `None` if it is missing or the value is not a mapping.
    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        let mut entries = self.entries()?.iter();
        entries.find(|(key, _)| &*key.name == name).map(|(_, value)| value)
    }

    /// Describes the type for messages: `a mapping`, `a number`.
    pub(crate) fn described(&self) -> &'static str {
        match self.kind {
            Kind::Null => "nothing",
            Kind::Bool(_) => "true or false",
            Kind::Int(_) | Kind::Large(_) | Kind::Float(_) => "a number",
            Kind::Text(..) => "text",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a mapping",
        }
    }
}
