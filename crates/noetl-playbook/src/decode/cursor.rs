//! A YAML node together with its path in the document.

use std::collections::HashSet;
use std::fmt;

use crate::diagnostic::SourcePos;
use crate::yaml::{MapKey, Node};

/// Path from the root to a value. Lives on the stack and is formatted only for diagnostics, so that
/// a valid document allocates no path strings.
#[derive(Debug, Clone, Copy)]
pub(super) enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl Path<'_> {
    /// Returns the path of a key below this path.
    pub(super) fn key<'b>(&'b self, name: &'b str) -> Path<'b> {
        Path::Key(self, name)
    }
}

impl fmt::Display for Path<'_> {
    /// Formats as `workflow[3].tool.kind`. Keys that are not plain names appear as `set["ctx.n"]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |name: &str| {
            let named = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
            !name.is_empty() && name.chars().all(named)
        };
        match self {
            Path::Root => Ok(()),
            Path::Key(Path::Root, name) if plain(name) => write!(f, "{name}"),
            Path::Key(parent, name) if plain(name) => write!(f, "{parent}.{name}"),
            Path::Key(parent, name) => write!(f, "{parent}[{name:?}]"),
            Path::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// A node and its path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    pub(super) node: &'a Node,
    pub(super) path: Path<'a>,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor at the root of a document.
    pub(super) fn root(node: &'a Node) -> Self {
        Self { node, path: Path::Root }
    }

    /// Returns the value of a key, or `None` if it is missing or null, which YAML authors use
    /// interchangeably.
    pub(super) fn get<'b>(&'b self, name: &'b str) -> Option<Cursor<'b>> {
        let node = self.node.get(name).filter(|node| !node.is_null())?;
        Some(Cursor { node, path: self.path.key(name) })
    }

    /// Returns the position of the key itself, if present. Its value may be null.
    pub(super) fn key<'b>(&'b self, name: &'b str) -> Option<(SourcePos, Path<'b>)> {
        let mut entries = self.node.entries()?.iter();
        let (key, _) = entries.find(|(key, _)| &*key.name == name)?;
        Some((key.at, self.path.key(name)))
    }

    /// Returns the position of the value.
    pub(super) fn position(&self) -> (SourcePos, Path<'a>) {
        (self.node.at, self.path)
    }

    /// Returns the entries of a mapping; empty for other values.
    pub(super) fn entries<'b>(&'b self) -> impl Iterator<Item = (&'b MapKey, Cursor<'b>)> {
        let entries = self.node.entries().unwrap_or_default();
        entries.iter().map(|(key, node)| {
            let path = self.path.key(&key.name);
            (key, Cursor { node, path })
        })
    }

    /// Returns the names of all keys as a set, for repeated lookups in a mapping that may be large.
    pub(super) fn names(&self) -> HashSet<&'a str> {
        let entries = self.node.entries().unwrap_or_default();
        entries.iter().map(|(key, _)| &*key.name).collect()
    }

    /// Returns the items of a list; empty for other values.
    pub(super) fn items<'b>(&'b self) -> impl Iterator<Item = Cursor<'b>> {
        let items = self.node.items().unwrap_or_default();
        items.iter().enumerate().map(|(index, node)| {
            let path = Path::Item(&self.path, index);
            Cursor { node, path }
        })
    }

    /// Returns the text without surrounding whitespace, or `None` if the value is not text.
    pub(super) fn text(&self) -> Option<&'a str> {
        self.node.text().map(str::trim)
    }

    pub(super) fn is_map(&self) -> bool {
        self.node.entries().is_some()
    }

    pub(super) fn is_list(&self) -> bool {
        self.node.items().is_some()
    }
}
