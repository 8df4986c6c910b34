//! Syntax tree of a document.

use std::rc::Rc;

use saphyr_parser::ScalarStyle;

use crate::diagnostic::SourcePos;

/// A value of the document. Cheap to clone, because its content is shared, as aliases require.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) kind: NodeKind,
    pub(crate) at: SourcePos,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NodeKind {
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
    Text(Rc<str>, QuoteStyle),
    List(Rc<Vec<Node>>),
    /// A mapping in document order, without duplicate keys.
    Map(Rc<Vec<(MapKey, Node)>>),
}

/// Style of a text, which determines how positions inside it map to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuoteStyle {
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

impl From<ScalarStyle> for QuoteStyle {
    fn from(style: ScalarStyle) -> Self {
        match style {
            ScalarStyle::Plain => Self::Plain,
            ScalarStyle::SingleQuoted => Self::Single,
            ScalarStyle::DoubleQuoted => Self::Double,
            ScalarStyle::Literal => Self::Literal,
            ScalarStyle::Folded => Self::Folded,
        }
    }
}

/// A key of a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MapKey {
    pub(crate) name: Rc<str>,
    pub(crate) at: SourcePos,
}

impl Node {
    /// Returns the text, or `None` if the value is not text.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::Text(text, _) => Some(text),
            _ => None,
        }
    }

    /// Returns `true` if the value is `null` or empty.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self.kind, NodeKind::Null)
    }

    /// Returns the entries, or `None` if the value is not a mapping.
    pub(crate) fn entries(&self) -> Option<&[(MapKey, Node)]> {
        match &self.kind {
            NodeKind::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// Returns the items, or `None` if the value is not a list.
    pub(crate) fn items(&self) -> Option<&[Node]> {
        match &self.kind {
            NodeKind::List(items) => Some(items),
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
            NodeKind::Null => "nothing",
            NodeKind::Bool(_) => "true or false",
            NodeKind::Int(_) | NodeKind::Large(_) | NodeKind::Float(_) => "a number",
            NodeKind::Text(..) => "text",
            NodeKind::List(_) => "a list",
            NodeKind::Map(_) => "a mapping",
        }
    }
}
