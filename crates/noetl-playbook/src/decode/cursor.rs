//! A node together with the way to it.

use std::collections::HashSet;
use std::fmt;

use crate::yaml::{Key, Node, Place};

/// The way from the root to a value. It lives on the stack and is printed only when something is
/// wrong, so that a correct document costs no path strings.
#[derive(Debug, Clone, Copy)]
pub(super) enum Path<'a> {
    Root,
    Key(&'a Path<'a>, &'a str),
    Item(&'a Path<'a>, usize),
}

impl Path<'_> {
    /// The way to a key below.
    pub(super) fn key<'b>(&'b self, name: &'b str) -> Path<'b> {
        Path::Key(self, name)
    }
}

impl fmt::Display for Path<'_> {
    /// `workflow[3].tool.kind`; keys that are not plain names as `set["ctx.n"]`.
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

/// A node and the way to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    pub(super) node: &'a Node,
    pub(super) path: Path<'a>,
}

impl<'a> Cursor<'a> {
    /// The root of a document.
    pub(super) fn root(node: &'a Node) -> Self {
        Self { node, path: Path::Root }
    }

    /// The value under a key; none when it is missing or null, which YAML authors use alike.
    pub(super) fn get<'b>(&'b self, name: &'b str) -> Option<Cursor<'b>> {
        let node = self.node.get(name).filter(|node| !node.is_null())?;
        Some(Cursor { node, path: self.path.key(name) })
    }

    /// Where the key itself stands, if there is one; it may hold null.
    pub(super) fn key<'b>(&'b self, name: &'b str) -> Option<(Place, Path<'b>)> {
        let mut entries = self.node.entries()?.iter();
        let (key, _) = entries.find(|(key, _)| &*key.name == name)?;
        Some((key.at, self.path.key(name)))
    }

    /// Where the value itself stands.
    pub(super) fn place(&self) -> (Place, Path<'a>) {
        (self.node.at, self.path)
    }

    /// The entries of a mapping; nothing for anything else.
    pub(super) fn entries<'b>(&'b self) -> impl Iterator<Item = (&'b Key, Cursor<'b>)> {
        let entries = self.node.entries().unwrap_or_default();
        entries.iter().map(|(key, node)| {
            let path = self.path.key(&key.name);
            (key, Cursor { node, path })
        })
    }

    /// The names of all keys, for many lookups in a mapping that may be large.
    pub(super) fn names(&self) -> HashSet<&'a str> {
        let entries = self.node.entries().unwrap_or_default();
        entries.iter().map(|(key, _)| &*key.name).collect()
    }

    /// The items of a list; nothing for anything else.
    pub(super) fn items<'b>(&'b self) -> impl Iterator<Item = Cursor<'b>> {
        let items = self.node.items().unwrap_or_default();
        items.iter().enumerate().map(|(index, node)| {
            let path = Path::Item(&self.path, index);
            Cursor { node, path }
        })
    }

    /// Its text without surrounding blanks, if it is text.
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
