//! How this database writes appends.

use noetl_store::{Append, Malformed};

use crate::arrays::{AppenderConfig, EncodedAppend};

/// Settings of this database that determine how appends are written.
#[derive(Debug, Clone)]
pub(crate) struct AppendMode {
    pub(crate) speaker: AppenderConfig,
    pub(crate) has_outbox: bool,
    /// Whether JSON columns of the catalog are `jsonb`, as in an adopted database.
    pub(crate) is_binary: bool,
}

impl AppendMode {
    /// Checks and encodes an append for this database.
    pub(crate) fn encode(&self, append: Append) -> Result<EncodedAppend, Malformed> {
        EncodedAppend::encode(append, self.has_outbox)
    }
}
