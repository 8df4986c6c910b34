//! Tokens straight on a store, where no control plane is asked: the first one, or one in the place of
//! one that was lost.

use std::sync::Arc;
use std::time::Duration;

use noetl_model::{Clock, Tenant};
use noetl_store::{Store, StoreError, Token};
use tokio_util::sync::CancellationToken;

use super::Recorded;
use crate::audit::SecretUses;
use crate::identity::{Identity, IdentityError};
use crate::ids::Ids;
use crate::tokens::{TokenError, TokenRequest, Tokens};

/// How long a machine number is leased. A change takes a moment; whoever dies meanwhile keeps the
/// number from others for so long.
const LEASE: Duration = Duration::from_secs(60);

/// Tokens of a store that this process has no control plane on. Nothing changes that cannot be
/// recorded.
pub struct DirectTokens {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    tokens: Tokens,
    who: String,
}

impl DirectTokens {
    /// The tokens of a store, as changed by `who`, as the audit names it.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, who: String) -> Self {
        let tokens = Tokens::new(store.clone(), clock.clone());
        Self { store, clock, tokens, who }
    }

    /// A tenant's tokens, oldest first.
    pub async fn list(&self, tenant: &Tenant) -> Result<Vec<Token>, StoreError> {
        self.tokens.list(tenant).await
    }

    /// Makes a token. The text is what its holder shows; it cannot be had again.
    pub async fn create(
        &self,
        tenant: &Tenant,
        request: TokenRequest,
    ) -> Result<(Token, String), TokenError> {
        self.recorded(async |recorded| recorded.create(tenant, &self.who, request).await).await
    }

    /// Ends a tenant's token. Whether there is one.
    pub async fn revoke(&self, tenant: &Tenant, id: &str) -> Result<bool, TokenError> {
        self.recorded(async |recorded| recorded.revoke(tenant, &self.who, id).await).await
    }

    /// Works under a machine number of its own: what is recorded has an id that nobody else mints.
    async fn recorded<T>(
        &self,
        work: impl AsyncFnOnce(&Recorded) -> Result<T, TokenError>,
    ) -> Result<T, TokenError> {
        let unrecorded = |error: IdentityError| {
            TokenError::Unrecorded(StoreError::backend("lease a machine number", error))
        };
        let identity = Identity::take(self.store.clone(), None, LEASE).await.map_err(unrecorded)?;
        let held = identity.clone();
        let ids = Ids::new(self.clock.clone(), identity.machine(), move || held.is_held());
        let uses = SecretUses::new(self.store.clone(), ids.clone(), true);
        let outcome = work(&Recorded { tokens: self.tokens.clone(), uses }).await;
        let leaving = CancellationToken::new();
        leaving.cancel();
        identity.keep(ids, leaving).await;
        outcome
    }
}
