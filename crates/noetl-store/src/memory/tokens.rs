//! [`TokenStore`] of the in-memory store.

use async_trait::async_trait;
use noetl_model::Tenant;

use super::MemoryStore;
use crate::{AccessToken, NewToken, StoreError, TokenStore};

#[async_trait]
impl TokenStore for MemoryStore {
    async fn put_token(&self, tenant: &Tenant, new: NewToken) -> Result<AccessToken, StoreError> {
        let created_at = self.clock.now();
        let mut state = self.state();
        if state.kept.tokens.contains_key(&new.id) {
            let taken = format!("token {} exists already", new.id);
            return Err(StoreError::backend("keep a token", taken));
        }
        let token = AccessToken { tenant: tenant.clone(), kept: new, created_at, revoked_at: None };
        state.kept.tokens.insert(token.kept.id.clone(), token.clone());
        Ok(token)
    }

    async fn put_first_token(
        &self,
        tenant: &Tenant,
        new: NewToken,
    ) -> Result<Option<AccessToken>, StoreError> {
        let created_at = self.clock.now();
        let mut state = self.state();
        if !state.kept.tokens.is_empty() {
            return Ok(None);
        }
        let token = AccessToken { tenant: tenant.clone(), kept: new, created_at, revoked_at: None };
        state.kept.tokens.insert(token.kept.id.clone(), token.clone());
        Ok(Some(token))
    }

    async fn token(&self, id: &str) -> Result<Option<AccessToken>, StoreError> {
        Ok(self.state().kept.tokens.get(id).cloned())
    }

    async fn tokens(&self, tenant: &Tenant) -> Result<Vec<AccessToken>, StoreError> {
        let state = self.state();
        let mine = state.kept.tokens.values().filter(|token| token.tenant == *tenant);
        let mut mine: Vec<AccessToken> = mine.cloned().collect();
        mine.sort_by(|a, b| (a.created_at, &a.kept.id).cmp(&(b.created_at, &b.kept.id)));
        Ok(mine)
    }

    async fn revoke_token(&self, tenant: &Tenant, id: &str) -> Result<bool, StoreError> {
        let now = self.clock.now();
        let mut state = self.state();
        let mine = state.kept.tokens.get_mut(id).filter(|token| token.tenant == *tenant);
        let found = mine.map(|token| token.revoked_at.get_or_insert(now)).is_some();
        Ok(found)
    }
}
