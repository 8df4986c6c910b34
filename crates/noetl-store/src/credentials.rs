//! Credentials by name, with their secret part encrypted.

use std::fmt;

use async_trait::async_trait;
use noetl_model::{CredentialId, Tenant, Timestamp, Value};

use crate::{StoreError, path_contains};

/// An encrypted text. A store keeps it as it is and never looks inside; printing it for a log or a
/// failed test shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed(String);

impl Sealed {
    /// Wraps an encrypted text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed({} bytes)", self.0.len())
    }
}

/// A credential to keep.
#[derive(Debug, Clone, PartialEq)]
pub struct NewCredential {
    /// Its id, minted by the caller; used only when the name is new.
    pub id: CredentialId,
    /// Its name, unique for its tenant.
    pub name: String,
    /// Its type, as `postgres`.
    pub kind: String,
    /// The encrypted text of its data.
    pub sealed: Sealed,
    /// The shape of its data.
    pub schema: Option<Value>,
    /// Whatever its owner notes.
    pub meta: Option<Value>,
    /// Its tags, in the order given.
    pub tags: Vec<String>,
    /// What it is for.
    pub description: Option<String>,
}

/// A credential as kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Credential {
    /// What was put; the id is the one the name was first put with.
    pub kept: NewCredential,
    /// When its name was first put.
    pub created_at: Timestamp,
    /// When it was last put.
    pub updated_at: Timestamp,
}

/// Which credentials to list.
#[derive(Debug, Clone, Default)]
pub struct CredentialFilter {
    /// Only this type.
    pub kind: Option<String>,
    /// Only names and descriptions that contain this text, whatever its case.
    pub text: Option<String>,
}

impl CredentialFilter {
    /// Whether the list shows this credential.
    pub fn takes(&self, credential: &NewCredential) -> bool {
        let kind = self.kind.as_ref().is_none_or(|kind| credential.kind == *kind);
        let text = self.text.as_ref().is_none_or(|text| {
            let description = credential.description.as_deref().unwrap_or_default();
            path_contains(&credential.name, text) || path_contains(description, text)
        });
        kind && text
    }
}

/// Credentials of tenants. Each call is atomic, and another tenant's credentials do not exist.
#[async_trait]
pub trait Credentials: Send + Sync {
    /// Keeps a credential, replacing all but id and first time of one with the same name.
    ///
    /// An id that another name has is a bug of the caller, and an error.
    async fn put_credential(
        &self,
        tenant: &Tenant,
        new: NewCredential,
    ) -> Result<Credential, StoreError>;

    /// The credential with this id.
    async fn credential(
        &self,
        tenant: &Tenant,
        id: CredentialId,
    ) -> Result<Option<Credential>, StoreError>;

    /// The credential with this name.
    async fn credential_named(
        &self,
        tenant: &Tenant,
        name: &str,
    ) -> Result<Option<Credential>, StoreError>;

    /// The credentials a filter takes, ordered by the bytes of their names.
    async fn credentials(
        &self,
        tenant: &Tenant,
        filter: &CredentialFilter,
    ) -> Result<Vec<Credential>, StoreError>;

    /// Removes a credential. Whether it was there.
    async fn delete_credential(
        &self,
        tenant: &Tenant,
        id: CredentialId,
    ) -> Result<bool, StoreError>;
}
