//! Errors of credentials and of everything that is sealed like them.

use noetl_store::StoreError;

use crate::sealing::{KEY_VARIABLE, SealError};

/// Size limit of credential data, in bytes of JSON. Redaction searches every report for every
/// secret in a dozen encodings, so size costs memory and time for the whole tenant. Keys and
/// certificate chains need a tenth of it.
pub(crate) const DATA_MAX: usize = 64 << 10;

/// Errors of storing and reading credentials.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// No credential has this ID or name.
    #[error("Credential '{0}' not found")]
    NotFound(String),
    /// The name or type is missing or too long.
    #[error("a credential needs a {0}")]
    Unnamed(&'static str),
    /// The data is larger than 64 KiB.
    #[error("credential data has {0} bytes as JSON, and at most {DATA_MAX} are stored")]
    TooLarge(usize),
    /// No encryption key is configured.
    #[error("{KEY_VARIABLE} is not set, so nothing can be encrypted or decrypted")]
    NoKey,
    /// Encrypting or decrypting the data failed.
    #[error("credential '{name}' cannot be used")]
    Sealed {
        name: String,
        #[source]
        source: SealError,
    },
    /// The control plane cannot resolve the playbook's keychain entry of that name.
    #[error("keychain entry '{name}' is unavailable: {reason}")]
    Unresolved { name: String, reason: String },
    /// The requesting playbook has no grant for the credential.
    #[error(
        "playbook '{path}' has no grant for credential '{name}'; an admin makes one with `noetl grant create --credential {name} --prefix PREFIX`"
    )]
    NotGranted { name: String, path: String },
    /// The response cannot be sealed for the requesting worker.
    #[error("nothing can be sealed for worker '{worker}': {reason}")]
    Worker { worker: String, reason: String },
    /// The audit is required, and the use could not be recorded.
    #[error("failed to record the use of a secret in the audit, so access was denied")]
    Unrecorded(#[source] StoreError),
    /// The audit is required, and the change could not be recorded.
    #[error("failed to record the change in the audit, so nothing was changed")]
    ChangeUnrecorded(#[source] StoreError),
    #[error("store is unavailable")]
    Store(#[source] StoreError),
}
