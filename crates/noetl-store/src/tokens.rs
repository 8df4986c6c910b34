//! Tokens that callers show, by the hash of their secret part.

use async_trait::async_trait;
use noetl_model::{Tenant, Timestamp};

use crate::{Digest, StoreError};

/// A token to keep. What its holder shows is not in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// The part of the token that is no secret; unique.
    pub id: String,
    /// The hash of the part that is.
    pub hash: Digest,
    /// What it is for.
    pub name: String,
    /// What its holder may do, as `operator`.
    pub role: String,
    /// Until when it counts; for ever without.
    pub expires_at: Option<Timestamp>,
    /// Pool whose commands the holder may run; any pool when `None`. For role `worker` only.
    pub pool: Option<String>,
}

/// A token as kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Whose rows its holder sees.
    pub tenant: Tenant,
    pub kept: NewToken,
    pub created_at: Timestamp,
    /// Since when it does not count any more.
    pub revoked_at: Option<Timestamp>,
}

/// Tokens of all tenants. Each call is atomic.
#[async_trait]
pub trait Tokens: Send + Sync {
    /// Keeps a token. An id that another has is a bug of the caller, and an error.
    async fn put_token(&self, tenant: &Tenant, new: NewToken) -> Result<Token, StoreError>;

    /// Keeps a token if no tenant has one. Of several calls at a time one does.
    async fn put_first_token(
        &self,
        tenant: &Tenant,
        new: NewToken,
    ) -> Result<Option<Token>, StoreError>;

    /// The token with this id, whoever's it is and whether it counts or not.
    async fn token(&self, id: &str) -> Result<Option<Token>, StoreError>;

    /// A tenant's tokens, oldest first, at equal times by id.
    async fn tokens(&self, tenant: &Tenant) -> Result<Vec<Token>, StoreError>;

    /// Ends a tenant's token. Whether there is one; that it was ended before is kept as it was.
    async fn revoke_token(&self, tenant: &Tenant, id: &str) -> Result<bool, StoreError>;
}
