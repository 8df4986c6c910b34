//! Parser from YAML text to a tree of [`Node`]s with source positions.
//!
//! Plain scalars follow the YAML 1.2 core schema, so `yes`, `no`, `on`, and `off` are text; quoted
//! scalars are always text. Anchors, aliases, and merge keys (`<<: *base`, or a list of them;
//! explicit keys take precedence, then earlier maps) are supported within a budget, so that a small
//! file cannot expand to a large one. Duplicate keys, unknown tags, and keys that are not names are
//! errors that do not stop the parser; broken syntax and exceeded limits do.

mod align;
mod build;
mod entries;
mod node;
mod scalar;
mod source;
mod syntax;

pub(crate) use align::locate;
pub(crate) use build::read;
pub(crate) use node::{MapKey, Node, NodeKind, QuoteStyle};
pub(crate) use source::SourceText;

/// Maximum size of a document in bytes. A playbook of 100,000 steps takes about 6 MiB; larger data
/// belongs in the workload or a store.
pub(crate) const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Maximum nesting depth. Every traversal of a document recurses once per level, so this bounds the
/// stack. The deepest published playbook has 14 levels.
pub(crate) const DEPTH_MAX: usize = 64;

/// Maximum number of values in a document after alias expansion. A playbook of 100,000 steps has
/// about 1.3 million.
pub(crate) const NODES_MAX: usize = 2_000_000;

/// Maximum number of values that aliases may add. Sharing a block of settings between a thousand
/// steps stays well below; a chain of aliases of aliases does not.
pub(crate) const ALIAS_NODES_MAX: usize = 200_000;

/// Maximum number of bytes of text that aliases may add, because repeating a long scalar is as
/// harmful as repeating many small ones.
pub(crate) const ALIAS_BYTES_MAX: usize = 16 * 1024 * 1024;

#[cfg(test)]
mod tests;
