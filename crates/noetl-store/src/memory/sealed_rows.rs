//! [`SealedRecordStore`] of the in-memory store.

use async_trait::async_trait;
use noetl_model::Tenant;

use super::MemoryStore;
use crate::{SealedLocation, SealedRecordStore, SealedRow, SealedText, StoreError};

#[async_trait]
impl SealedRecordStore for MemoryStore {
    async fn sealed_rows(
        &self,
        after: Option<&SealedLocation>,
        limit: usize,
    ) -> Result<Vec<SealedRow>, StoreError> {
        let state = self.state();
        let credentials = state.kept.credentials.iter().map(|((tenant, _), known)| SealedRow {
            location: SealedLocation::Credential(known.kept.id),
            tenant: tenant.clone(),
            name: known.kept.name.clone(),
            kind: known.kept.kind.clone(),
            sealed: known.kept.sealed.clone(),
        });
        let keychain = state.kept.keychain.iter().map(|((tenant, key), entry)| SealedRow {
            location: SealedLocation::Keychain(tenant.clone(), key.clone()),
            tenant: tenant.clone(),
            name: entry.kept.name.clone(),
            kind: entry.kept.credential_kind.clone(),
            sealed: entry.kept.sealed.clone(),
        });
        let settings = state.kept.settings.iter().map(|(name, sealed)| SealedRow {
            location: SealedLocation::Setting(name.clone()),
            tenant: Tenant::default(),
            name: name.clone(),
            kind: String::new(),
            sealed: sealed.clone(),
        });
        let all = credentials.chain(keychain).chain(settings);
        let mut rows: Vec<SealedRow> =
            all.filter(|row| after.is_none_or(|after| row.location > *after)).collect();
        rows.sort_by(|one, other| one.location.cmp(&other.location));
        rows.truncate(limit);
        Ok(rows)
    }

    async fn reseal(
        &self,
        location: &SealedLocation,
        was: &SealedText,
        now: &SealedText,
    ) -> Result<bool, StoreError> {
        let mut state = self.state();
        let found = match location {
            SealedLocation::Credential(id) => {
                let mut all = state.kept.credentials.values_mut();
                all.find(|known| known.kept.id == *id).map(|known| &mut known.kept.sealed)
            }
            SealedLocation::Keychain(tenant, key) => {
                let found = state.kept.keychain.get_mut(&(tenant.clone(), key.clone()));
                found.map(|entry| &mut entry.kept.sealed)
            }
            SealedLocation::Setting(name) => state.kept.settings.get_mut(name),
        };
        match found.filter(|found| *found == was) {
            Some(found) => {
                *found = now.clone();
                Ok(true)
            }
            None => Ok(false),
        }
    }

    async fn sealed_setting(&self, name: &str) -> Result<Option<SealedText>, StoreError> {
        Ok(self.state().kept.settings.get(name).cloned())
    }

    async fn put_sealed_setting(
        &self,
        name: &str,
        new: &SealedText,
    ) -> Result<SealedText, StoreError> {
        let mut state = self.state();
        Ok(state.kept.settings.entry(name.to_owned()).or_insert_with(|| new.clone()).clone())
    }
}
