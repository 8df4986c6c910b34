//! What is encrypted, in memory.

use async_trait::async_trait;

use super::MemoryStore;
use crate::{Sealed, SealedPlace, SealedRow, SealedRows, StoreError};

#[async_trait]
impl SealedRows for MemoryStore {
    async fn sealed_rows(
        &self,
        after: Option<&SealedPlace>,
        limit: usize,
    ) -> Result<Vec<SealedRow>, StoreError> {
        let state = self.state();
        let credentials = state.kept.credentials.values().map(|known| SealedRow {
            place: SealedPlace::Credential(known.kept.id),
            sealed: known.kept.sealed.clone(),
        });
        let keychain = state.kept.keychain.iter().map(|((tenant, key), entry)| SealedRow {
            place: SealedPlace::Keychain(tenant.clone(), key.clone()),
            sealed: entry.kept.sealed.clone(),
        });
        let all = credentials.chain(keychain);
        let mut rows: Vec<SealedRow> =
            all.filter(|row| after.is_none_or(|after| row.place > *after)).collect();
        rows.sort_by(|one, other| one.place.cmp(&other.place));
        rows.truncate(limit);
        Ok(rows)
    }

    async fn reseal(
        &self,
        place: &SealedPlace,
        was: &Sealed,
        now: &Sealed,
    ) -> Result<bool, StoreError> {
        let mut state = self.state();
        let found = match place {
            SealedPlace::Credential(id) => {
                let mut all = state.kept.credentials.values_mut();
                all.find(|known| known.kept.id == *id).map(|known| &mut known.kept.sealed)
            }
            SealedPlace::Keychain(tenant, key) => {
                let found = state.kept.keychain.get_mut(&(tenant.clone(), key.clone()));
                found.map(|entry| &mut entry.kept.sealed)
            }
        };
        match found.filter(|found| *found == was) {
            Some(found) => {
                *found = now.clone();
                Ok(true)
            }
            None => Ok(false),
        }
    }
}
