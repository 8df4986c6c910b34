//! The tree that a document is read into.

use std::rc::Rc;

/// Where something was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Line, from 1.
    pub(crate) line: u32,
    /// Column in characters, from 1.
    pub(crate) column: u32,
}

impl Place {
    /// The first character of a document.
    pub(crate) const START: Self = Self { line: 1, column: 1 };
}

/// One value of the document. Cheap to clone: everything below is shared, as aliases need it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    pub(crate) at: Place,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    /// `null`, `~` or nothing at all.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number that fits `i64`.
    Int(i64),
    /// A whole number above `i64::MAX`.
    Large(u64),
    /// Any other number, `.inf` and `.nan` included.
    Float(f64),
    /// Text and how it was written.
    Text(Rc<str>, Style),
    List(Rc<Vec<Node>>),
    /// A mapping in document order, without duplicate keys.
    Map(Rc<Vec<(Key, Node)>>),
}

/// How a text was written, which decides how positions inside it map to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Without quotes.
    Plain,
    /// `'…'`.
    Single,
    /// `"…"`.
    Double,
    /// `|`.
    Literal,
    /// `>`.
    Folded,
}

/// A key of a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) name: Rc<str>,
    pub(crate) at: Place,
}

impl Node {
    /// Its text, if it is text.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text, _) => Some(text),
            _ => None,
        }
    }

    /// Whether it is `null` or nothing.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self.kind, Kind::Null)
    }

    /// Its entries, if it is a mapping.
    pub(crate) fn entries(&self) -> Option<&[(Key, Node)]> {
        match &self.kind {
            Kind::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// Its items, if it is a list.
    pub(crate) fn items(&self) -> Option<&[Node]> {
        match &self.kind {
            Kind::List(items) => Some(items),
            _ => None,
        }
    }

    /// The value under a key, if it is a mapping that has it.
    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        let mut entries = self.entries()?.iter();
        entries.find(|(key, _)| &*key.name == name).map(|(_, value)| value)
    }

    /// What it is, for messages: `a mapping`, `a number`.
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
