//! Token changes directly on a store, without a running control plane: to create the first token or
//! replace a lost one.

use std::sync::Arc;
use std::time::Duration;

use noetl_identity::{IdGenerator, IdentityError, ProcessIdentity};
use noetl_model::{Clock, Tenant};
use noetl_store::{AccessToken, SecretsStore, StoreError};
use tokio_util::sync::CancellationToken;

use super::Recorded;
use crate::SecretAuditLog;
use crate::{TokenError, TokenRequest, Tokens};

/// Duration of the machine-ID lease. A change takes far less. If the process dies, its machine ID
/// stays unavailable for this long.
const LEASE: Duration = Duration::from_secs(60);

/// Access tokens of a store on which this process runs no control plane. A change that cannot be
/// recorded in the audit is not made.
pub struct DirectTokens {
    store: Arc<dyn SecretsStore>,
    clock: Arc<dyn Clock>,
    tokens: Tokens,
    who: String,
}

impl DirectTokens {
    /// Creates the service. `who` identifies the caller in the audit.
    pub fn new(store: Arc<dyn SecretsStore>, clock: Arc<dyn Clock>, who: String) -> Self {
        let tokens = Tokens::new(store.clone(), clock.clone());
        Self { store, clock, tokens, who }
    }

    /// Returns a tenant's tokens, oldest first.
    pub async fn list(&self, tenant: &Tenant) -> Result<Vec<AccessToken>, StoreError> {
        self.tokens.list(tenant).await
    }

    /// Creates an access token. Returns it with its secret text, which cannot be read later.
    pub async fn create(
        &self,
        tenant: &Tenant,
        request: TokenRequest,
    ) -> Result<(AccessToken, String), TokenError> {
        self.recorded(async |recorded| recorded.create(tenant, &self.who, request).await).await
    }

    /// Revokes a tenant's access token. Returns `false` if the tenant has no token with this ID.
    pub async fn revoke(&self, tenant: &Tenant, id: &str) -> Result<bool, TokenError> {
        self.recorded(async |recorded| recorded.revoke(tenant, &self.who, id).await).await
    }

    /// Runs `work` under a leased machine ID, so audit IDs do not collide with those of other
    /// processes. Releases the lease afterward.
    async fn recorded<T>(
        &self,
        work: impl AsyncFnOnce(&Recorded) -> Result<T, TokenError>,
    ) -> Result<T, TokenError> {
        let unrecorded = |error: IdentityError| {
            TokenError::Unrecorded(StoreError::backend("lease a machine number", error))
        };
        let identity =
            ProcessIdentity::acquire(self.store.clone(), None, LEASE).await.map_err(unrecorded)?;
        let held = identity.clone();
        let ids = IdGenerator::new(self.clock.clone(), identity.machine(), move || held.is_held());
        let uses = SecretAuditLog::new(self.store.clone(), ids.clone(), true);
        let outcome = work(&Recorded { tokens: self.tokens.clone(), uses }).await;
        let leaving = CancellationToken::new();
        leaving.cancel();
        identity.renew_until_closed(ids, leaving).await;
        outcome
    }
}
