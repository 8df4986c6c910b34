//! [`CredentialStore`] of the in-memory store.

use async_trait::async_trait;
use noetl_model::{CredentialId, Tenant};

use super::MemoryStore;
use crate::{CredentialFilter, CredentialStore, NewCredential, StoreError, StoredCredential};

#[async_trait]
impl CredentialStore for MemoryStore {
    async fn put_credential(
        &self,
        tenant: &Tenant,
        mut new: NewCredential,
    ) -> Result<StoredCredential, StoreError> {
        let now = self.clock.now();
        let mut state = self.state();
        let all = &mut state.kept.credentials;
        let key = (tenant.clone(), new.name.clone());
        let known = all.get(&key).map(|known| (known.kept.id, known.created_at));
        if known.is_none() && all.values().any(|known| known.kept.id == new.id) {
            let taken = format!("credential {} exists already", new.id);
            return Err(StoreError::backend("keep a credential", taken));
        }
        let (id, created_at) = known.unwrap_or((new.id, now));
        new.id = id;
        let credential = StoredCredential { kept: new, created_at, updated_at: now };
        all.insert(key, credential.clone());
        Ok(credential)
    }

    async fn credential(
        &self,
        tenant: &Tenant,
        id: CredentialId,
    ) -> Result<Option<StoredCredential>, StoreError> {
        let state = self.state();
        let mut mine = state.kept.credentials.iter().filter(|((owner, _), _)| owner == tenant);
        Ok(mine.find(|(_, known)| known.kept.id == id).map(|(_, known)| known.clone()))
    }

    async fn credential_named(
        &self,
        tenant: &Tenant,
        name: &str,
    ) -> Result<Option<StoredCredential>, StoreError> {
        let key = (tenant.clone(), name.to_owned());
        Ok(self.state().kept.credentials.get(&key).cloned())
    }

    async fn credentials(
        &self,
        tenant: &Tenant,
        filter: &CredentialFilter,
    ) -> Result<Vec<StoredCredential>, StoreError> {
        let state = self.state();
        let mine = state.kept.credentials.iter().filter(|((owner, _), _)| owner == tenant);
        let taken = mine.filter(|(_, known)| filter.takes(&known.kept));
        Ok(taken.map(|(_, known)| known.clone()).collect())
    }

    async fn delete_credential(
        &self,
        tenant: &Tenant,
        id: CredentialId,
    ) -> Result<bool, StoreError> {
        let mut state = self.state();
        let all = &mut state.kept.credentials;
        let before = all.len();
        all.retain(|(owner, _), known| owner != tenant || known.kept.id != id);
        Ok(all.len() < before)
    }
}
