//! Walk over all encrypted texts of all tenants, for key rotation.

use async_trait::async_trait;
use noetl_model::{CredentialId, Tenant};

use crate::{SealedText, StoreError};

/// Location of an encrypted text. The order is that of the walk: credentials by ID, then keychain
/// entries by tenant and cache key, then settings by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SealedLocation {
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
    pub location: SealedLocation,
    /// Owner; the default tenant for settings.
    pub tenant: Tenant,
    /// Name of the credential, keychain entry, or setting.
    pub name: String,
    /// Credential type; empty for settings.
    pub kind: String,
    /// Encrypted text, in envelope version 1 or 2.
    pub sealed: SealedText,
}

/// Walk over encrypted texts. Each call is atomic.
#[async_trait]
pub trait SealedRecordStore: Send + Sync {
    /// Returns up to `limit` encrypted texts after a location, in the order of the walk. Fewer
    /// means that none follow. Includes expired entries of the keychain.
    async fn sealed_rows(
        &self,
        after: Option<&SealedLocation>,
        limit: usize,
    ) -> Result<Vec<SealedRow>, StoreError>;

    /// Replaces an encrypted text if it still equals `was`. Returns `true` if it did. The rest of
    /// the row is unchanged.
    async fn reseal(
        &self,
        location: &SealedLocation,
        was: &SealedText,
        now: &SealedText,
    ) -> Result<bool, StoreError>;

    /// Returns the setting with this name.
    async fn sealed_setting(&self, name: &str) -> Result<Option<SealedText>, StoreError>;

    /// Adds a setting unless one with its name exists. Returns the stored one, so that all
    /// processes use the first.
    async fn put_sealed_setting(
        &self,
        name: &str,
        new: &SealedText,
    ) -> Result<SealedText, StoreError>;
}
