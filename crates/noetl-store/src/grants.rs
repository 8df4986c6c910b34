//! Grants: paths that callers may act on, and credentials that playbooks may use.

use async_trait::async_trait;
use noetl_model::{Tenant, Timestamp};

use crate::StoreError;

/// Type of object that a grant covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GrantKind {
    /// A role, on documents and executions below a path prefix.
    Path,
    /// A credential, in playbooks below a path prefix.
    Credential,
}

impl GrantKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Credential => "credential",
        }
    }

    /// Returns the kind with this stored text.
    pub fn from_text(text: &str) -> Option<Self> {
        [Self::Path, Self::Credential].into_iter().find(|kind| kind.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewGrant {
    /// Grant ID, unique across all tenants.
    pub id: String,
    /// Whether a role or a credential is granted.
    pub kind: GrantKind,
    /// Name of the role or of the credential.
    pub target: String,
    /// Caller that a path grant applies to, as named in the audit log; every caller with the role
    /// if `None`. Always `None` for credentials.
    pub subject: Option<String>,
    /// Prefix of catalog paths. Empty for all of them.
    pub prefix: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Tenant whose paths and credentials the grant covers.
    pub tenant: Tenant,
    /// ID and terms, as given to [`Grants::put_grant`].
    pub kept: NewGrant,
    /// Creation time by the store's clock.
    pub created_at: Timestamp,
}

/// Grants of all tenants. Each call is atomic.
#[async_trait]
pub trait Grants: Send + Sync {
    /// Stores a grant. An ID that another grant has is an error.
    async fn put_grant(&self, tenant: &Tenant, new: NewGrant) -> Result<Grant, StoreError>;

    /// Returns a tenant's grants by ascending creation time, then by ID.
    async fn grants(&self, tenant: &Tenant) -> Result<Vec<Grant>, StoreError>;

    /// Removes a tenant's grant. Returns `true` if it existed.
    async fn remove_grant(&self, tenant: &Tenant, id: &str) -> Result<bool, StoreError>;
}
