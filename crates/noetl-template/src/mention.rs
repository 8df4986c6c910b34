//! Names that a template refers to, used to load values before rendering.

use std::sync::Arc;

/// A free name in a template.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mention {
    /// Name: `ctx`, `workload`, a step, or a key.
    pub name: Arc<str>,
    pub next: MentionSuffix,
}

/// Key that follows a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MentionSuffix {
    /// No key: the name is used as a whole.
    Nothing,
    /// A literal key, known at compile time.
    Key(Arc<str>),
    /// A key computed during rendering.
    Computed,
}
