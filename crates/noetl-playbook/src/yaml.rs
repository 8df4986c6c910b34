//! YAML text to a tree of [`Node`]s that remember where they were written.
//!
//! Plain scalars follow the YAML 1.2 core schema, so `yes`, `no`, `on` and `off` are text; quoted
//! scalars are always text. Anchors, aliases and merge keys (`<<: *base`, or a list of them; a key
//! written out wins, then the earlier map) work within a budget, so that a small file cannot
//! unfold into a large one. Duplicate keys, unknown tags and keys that are not names are errors
//! that do not end the reading; broken syntax and exceeded limits do.

mod align;
mod build;
mod entries;
mod node;
mod scalar;
mod source;
mod syntax;

pub(crate) use align::locate;
pub(crate) use build::read;
pub(crate) use node::{Key, Kind, Node, Place, Style};
pub(crate) use source::Source;

/// Bytes of one document. A playbook of 100 000 steps takes about 6 MiB; anything beyond this is
/// data that belongs in the workload or a store.
pub(crate) const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Levels of nesting. Everything that walks a document recurses once per level, so this bounds the
/// stack; the deepest published playbook uses 14.
pub(crate) const DEPTH_MAX: usize = 64;

/// Values of one document once aliases are unfolded. A playbook of 100 000 steps holds about 1.3
/// million.
pub(crate) const NODES_MAX: usize = 2_000_000;

/// Values that aliases may add. Sharing a block of settings between a thousand steps stays well
/// below; a chain of aliases of aliases does not.
pub(crate) const ALIAS_NODES_MAX: usize = 200_000;

/// Bytes of text that aliases may add, since a single long scalar repeated is as harmful as many
/// small ones.
pub(crate) const ALIAS_BYTES_MAX: usize = 16 * 1024 * 1024;

#[cfg(test)]
mod tests;
