//! Everything that is encrypted, whosever it is: what has to be gone through when the key changes.

use async_trait::async_trait;
use noetl_model::{CredentialId, Tenant};

use crate::{Sealed, StoreError};

/// Location of an encrypted text. The order is that of the walk: credentials by ID, then keychain
/// entries by tenant and cache key, then settings by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SealedPlace {
    Credential(CredentialId),
    /// A keychain entry, by its cache key.
    Keychain(Tenant, String),
    /// A secret of the installation, by its name.
    Setting(String),
}

/// An encrypted text with its location and owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedRow {
    /// Row that holds the text; also the cursor of the walk.
    pub place: SealedPlace,
    /// Owner; the default tenant for settings.
    pub tenant: Tenant,
    /// Name of the credential, keychain entry, or setting.
    pub name: String,
    /// Credential type; empty for settings.
    pub kind: String,
    /// Encrypted text, in envelope version 1 or 2.
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

    /// Returns the setting of a name.
    async fn sealed_setting(&self, name: &str) -> Result<Option<Sealed>, StoreError>;

    /// Adds a setting unless there is one of its name. Returns the one that is there, so that all
    /// processes agree on the first.
    async fn put_sealed_setting(&self, name: &str, new: &Sealed) -> Result<Sealed, StoreError>;
}
