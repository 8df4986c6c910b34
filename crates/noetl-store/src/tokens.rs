//! Access tokens, by the hash of their secret part.

use async_trait::async_trait;
use noetl_model::{Tenant, Timestamp};

use crate::{Digest, StoreError};

/// An access token to store. Does not contain the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// Public part of the token; unique.
    pub id: String,
    /// Hash of the secret part.
    pub hash: Digest,
    /// Name that describes the token's purpose.
    pub name: String,
    /// Role of the holder, such as `operator`.
    pub role: String,
    /// Expiration time; never expires if `None`.
    pub expires_at: Option<Timestamp>,
    /// Pool whose commands the holder may run; any pool if `None`. For role `worker` only.
    pub pool: Option<String>,
}

/// An access token as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessToken {
    /// Tenant whose rows the holder may access.
    pub tenant: Tenant,
    pub kept: NewToken,
    pub created_at: Timestamp,
    /// Time of revocation; `None` if the token is not revoked.
    pub revoked_at: Option<Timestamp>,
}

/// Access tokens of all tenants. Each call is atomic.
#[async_trait]
pub trait TokenStore: Send + Sync {
    /// Stores a token. An ID that another token has is a bug of the caller, and an error.
    async fn put_token(&self, tenant: &Tenant, new: NewToken) -> Result<AccessToken, StoreError>;

    /// Stores a token if no tenant has one. Of several concurrent calls, one succeeds.
    async fn put_first_token(
        &self,
        tenant: &Tenant,
        new: NewToken,
    ) -> Result<Option<AccessToken>, StoreError>;

    /// Returns the token with this ID, of any tenant, valid or not.
    async fn token(&self, id: &str) -> Result<Option<AccessToken>, StoreError>;

    /// Returns a tenant's tokens by ascending creation time, then by ID.
    async fn tokens(&self, tenant: &Tenant) -> Result<Vec<AccessToken>, StoreError>;

    /// Revokes a tenant's token. Returns `true` if the token exists. An earlier revocation time is
    /// unchanged.
    async fn revoke_token(&self, tenant: &Tenant, id: &str) -> Result<bool, StoreError>;
}
