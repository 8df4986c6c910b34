//! Credentials by name, with their secret part encrypted.

use std::fmt;

use async_trait::async_trait;
use noetl_model::{CredentialId, Tenant, Timestamp, Value};

use crate::{StoreError, path_contains};

/// An encrypted text. A store writes it unchanged and never decrypts it; `Debug` output shows only
/// its length.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedText(String);

impl SealedText {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SealedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed({} bytes)", self.0.len())
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewCredential {
    /// Credential ID, minted by the caller; used only if the name is new.
    pub id: CredentialId,
    /// Name, unique within the tenant.
    pub name: String,
    /// Credential type, such as `postgres`.
    pub kind: String,
    /// Encrypted text of the credential's data.
    pub sealed: SealedText,
    /// Schema of the credential's data.
    pub schema: Option<Value>,
    /// Metadata set by the owner.
    pub meta: Option<Value>,
    /// Tags, in the order given.
    pub tags: Vec<String>,
    /// Description of the credential's purpose.
    pub description: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StoredCredential {
    /// Stored fields. The ID is the one with which the name was first put.
    pub kept: NewCredential,
    /// Time the name was first put.
    pub created_at: Timestamp,
    /// Time of the last put.
    pub updated_at: Timestamp,
}

/// Filter of a credential listing.
#[derive(Debug, Clone, Default)]
pub struct CredentialFilter {
    /// Includes only credentials of this type; `None` includes all.
    pub kind: Option<String>,
    /// Includes only names and descriptions that contain this text, ignoring case.
    pub text: Option<String>,
}

impl CredentialFilter {
    /// Returns `true` if the credential matches the filter.
    pub fn takes(&self, credential: &NewCredential) -> bool {
        let kind = self.kind.as_ref().is_none_or(|kind| credential.kind == *kind);
        let text = self.text.as_ref().is_none_or(|text| {
            let description = credential.description.as_deref().unwrap_or_default();
            path_contains(&credential.name, text) || path_contains(description, text)
        });
        kind && text
    }
}

/// Credentials of tenants. Each call is atomic, and other tenants' credentials are invisible.
#[async_trait]
pub trait CredentialStore: Send + Sync {
    /// Stores a credential. Replaces everything but the ID and creation time of one with the same
    /// name.
    ///
    /// An ID that belongs to another name is a bug of the caller, and an error.
    async fn put_credential(
        &self,
        tenant: &Tenant,
        new: NewCredential,
    ) -> Result<StoredCredential, StoreError>;

    /// Returns the credential with this ID.
    async fn credential(
        &self,
        tenant: &Tenant,
        id: CredentialId,
    ) -> Result<Option<StoredCredential>, StoreError>;

    /// Returns the credential with this name.
    async fn credential_named(
        &self,
        tenant: &Tenant,
        name: &str,
    ) -> Result<Option<StoredCredential>, StoreError>;

    /// Returns the credentials that match a filter, in byte order of their names.
    async fn credentials(
        &self,
        tenant: &Tenant,
        filter: &CredentialFilter,
    ) -> Result<Vec<StoredCredential>, StoreError>;

    /// Removes a credential. Returns `true` if it existed.
    async fn delete_credential(
        &self,
        tenant: &Tenant,
        id: CredentialId,
    ) -> Result<bool, StoreError>;
}
