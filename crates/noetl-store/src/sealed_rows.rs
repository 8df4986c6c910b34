//! Everything that is encrypted, whosever it is: what has to be gone through when the key changes.

use async_trait::async_trait;
use noetl_model::{CredentialId, Tenant};

use crate::{Sealed, StoreError};

/// Where an encrypted text is. The order is that of the walk: credentials by id, then keychain
/// entries by tenant and cache key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SealedPlace {
    /// A credential.
    Credential(CredentialId),
    /// A keychain entry, by its cache key.
    Keychain(Tenant, String),
}

/// An encrypted text and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedRow {
    /// Where.
    pub place: SealedPlace,
    /// The text.
    pub sealed: Sealed,
}

/// A walk over what is encrypted. Each call is atomic.
#[async_trait]
pub trait SealedRows: Send + Sync {
    /// Encrypted texts after a place, in the order of places, up to `limit`; fewer mean that none
    /// follow. Expired entries of the keychain are among them.
    async fn sealed_rows(
        &self,
        after: Option<&SealedPlace>,
        limit: usize,
    ) -> Result<Vec<SealedRow>, StoreError>;

    /// Puts another text in the place of one, if it is still that one. Whether it was. Nothing
    /// else of the row changes.
    async fn reseal(
        &self,
        place: &SealedPlace,
        was: &Sealed,
        now: &Sealed,
    ) -> Result<bool, StoreError>;
}
