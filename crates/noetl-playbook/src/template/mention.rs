//! What a template's text names, for whoever loads values before it is rendered.

use std::sync::Arc;

/// A name that is written in a template and not bound there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mention {
    /// The name: `ctx`, `workload`, a step, a key.
    pub name: Arc<str>,
    pub next: Next,
}

/// What follows a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Next {
    /// Nothing: it is used as a whole.
    Nothing,
    /// A key that is written there.
    Key(Arc<str>),
    /// A key that is known only while rendering.
    Computed,
}
