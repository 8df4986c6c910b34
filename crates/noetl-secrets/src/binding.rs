//! Migrates encrypted values to envelope version 2, which binds each value to its location.
//!
//! Older replicas cannot read version 2, so no replica writes it until an operator requests the
//! migration, once all replicas support it. From then on, new values are written in version 2,
//! stored values are rewritten, and finally a marker disables version 1. Both steps are stored as
//! settings, so every replica follows.

use noetl_model::Value;
use noetl_store::{SealedRow, SecretsStore, StoreError};
use tracing::warn;

use crate::credential_error::CredentialError;
use crate::rotation::{KeyRotation, NAMED_MAX, PAGE, named};
use crate::sealing::{Binding, EncryptionKey, SealError, SealedAt, is_bound};

/// Setting that exists once version 2 is written.
const WRITING: &str = "envelope/2";

/// Setting that exists once version 1 is rejected.
const BOUND: &str = "envelope/2-only";

/// Passes over all values before `reseal` gives up because other processes still write version 1.
const PASSES_MAX: usize = 5;

/// Counts and problems of one [`KeyRotation::reseal`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resealed {
    /// Values rewritten from version 1 to version 2.
    pub resealed: u64,
    /// Values that were in version 2 already, in the last pass.
    pub bound: u64,
    /// Values that could not be decrypted, as `credential 12: reason`; at most 100. If there are
    /// any, version 1 stays readable.
    pub problems: Vec<String>,
    /// Number of further values that could not be decrypted.
    pub more: u64,
    /// Whether version 1 is rejected from now on.
    pub is_complete: bool,
}

/// Loads the markers that other processes stored, and switches the key to their envelope version.
pub(crate) async fn follow(
    store: &dyn SecretsStore,
    key: &EncryptionKey,
) -> Result<(), StoreError> {
    for (name, binding) in [(BOUND, Binding::Bound), (WRITING, Binding::Writing)] {
        if key.binding() >= binding {
            return Ok(());
        }
        let Some(marker) = store.sealed_setting(name).await? else { continue };
        match key.open_at(&SealedAt::Setting(name), &marker) {
            Ok(_) => key.bind(binding),
            Err(error) => warn!(name, %error, "marker of bound values does not open"),
        }
    }
    Ok(())
}

impl KeyRotation {
    /// Rewrites all values in version 2, then rejects version 1. Safe to interrupt and repeat.
    ///
    /// Version 1 stays readable if a value cannot be decrypted, or if other processes still write
    /// version 1 in the last of five passes.
    pub async fn reseal(&self) -> Result<Resealed, CredentialError> {
        let key = self.key()?;
        follow(&*self.store, key).await.map_err(CredentialError::Store)?;
        self.mark(key, WRITING, Binding::Writing).await?;
        let mut done = Resealed::default();
        for _ in 0..PASSES_MAX {
            let before = done.resealed;
            let is_done = self.pass(key, &mut done).await?;
            if !done.problems.is_empty() {
                return Ok(done);
            }
            if is_done && done.resealed == before {
                self.mark(key, BOUND, Binding::Bound).await?;
                done.is_complete = true;
                return Ok(done);
            }
        }
        Ok(done)
    }

    /// Rewrites every value once. Returns `false` if another process changed a value before it
    /// could be rewritten.
    async fn pass(
        &self,
        key: &EncryptionKey,
        done: &mut Resealed,
    ) -> Result<bool, CredentialError> {
        let (mut after, mut is_done) = (None, true);
        done.bound = 0;
        while let Some(page) = self.page(after.as_ref()).await? {
            for row in &page {
                match key.bound(&SealedAt::from_row(row), &row.sealed) {
                    Ok(None) => done.bound += 1,
                    Ok(Some(bound)) => {
                        let kept = self.store.reseal(&row.location, &row.sealed, &bound).await;
                        match kept.map_err(CredentialError::Store)? {
                            true => done.resealed += 1,
                            false => is_done = false,
                        }
                    }
                    Err(error) => describe(row, &error, &mut done.problems, &mut done.more),
                }
            }
            after = page.into_iter().next_back().map(|row| row.location);
        }
        Ok(is_done)
    }

    /// Switches the key to an envelope version and stores its marker. The marker is a version 2
    /// envelope itself, so writing a valid one requires the encryption key.
    async fn mark(
        &self,
        key: &EncryptionKey,
        name: &str,
        binding: Binding,
    ) -> Result<(), CredentialError> {
        key.bind(binding);
        let failed = |source| CredentialError::Sealed { name: name.to_owned(), source };
        let marker = key.seal_at(&SealedAt::Setting(name), &Value::from(name)).map_err(failed)?;
        let kept = self.store.put_sealed_setting(name, &marker).await;
        kept.map(drop).map_err(CredentialError::Store)
    }
}

fn describe(row: &SealedRow, error: &SealError, problems: &mut Vec<String>, more: &mut u64) {
    match problems.len() < NAMED_MAX {
        true => problems.push(format!("{}: {error}", named(&row.location))),
        false => *more += 1,
    }
}

/// Returns the problems of a store's encrypted values: those that do not decrypt at their location,
/// and those in version 1 although version 1 is disabled. Without a key, checks only the latter.
pub async fn verify_sealed(
    store: &dyn SecretsStore,
    key: Option<&EncryptionKey>,
) -> Result<Vec<String>, StoreError> {
    let (mut problems, mut more) = (Vec::new(), 0);
    let is_marked = store.sealed_setting(BOUND).await?.is_some();
    if let Some(key) = key {
        follow(store, key).await?;
    }
    let mut after = None;
    loop {
        let page = store.sealed_rows(after.as_ref(), PAGE).await?;
        for row in &page {
            let opened = match key {
                Some(key) => key.open_at(&SealedAt::from_row(row), &row.sealed).map(drop),
                None if is_marked && !is_bound(&row.sealed) => Err(SealError::Unbound),
                None => Ok(()),
            };
            if let Err(error) = opened {
                describe(row, &error, &mut problems, &mut more);
            }
        }
        if page.len() < PAGE {
            break;
        }
        after = page.into_iter().next_back().map(|row| row.location);
    }
    if more > 0 {
        problems.push(format!("{more} more encrypted values do not open"));
    }
    Ok(problems)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use noetl_model::{CredentialId, Tenant};
    use noetl_store::{
        CredentialStore as _, MemoryStore, NewCredential, SealedLocation, SealedRecordStore as _,
        SealedText,
    };
    use serde_json::json;

    use super::*;

    fn keys(store: &Arc<MemoryStore>, key: &EncryptionKey) -> KeyRotation {
        KeyRotation::new(store.clone(), Some(key.clone()))
    }

    /// A clone that knows nothing of markers, as another process has it.
    fn of_another_process(key: &EncryptionKey) -> EncryptionKey {
        EncryptionKey::from_base64(&key.to_base64()).expect("a key")
    }

    async fn put(store: &MemoryStore, key: &EncryptionKey, id: i64, tenant: &Tenant, name: &str) {
        let at = SealedAt::Credential { tenant, name };
        let new = NewCredential {
            id: CredentialId::new(id),
            name: name.into(),
            kind: "t".into(),
            sealed: key.seal_at(&at, &json!({"of": name})).expect("sealed"),
            schema: None,
            meta: None,
            tags: Vec::new(),
            description: None,
        };
        store.put_credential(tenant, new).await.expect("kept");
    }

    #[tokio::test]
    async fn a_swapped_row_fails_to_open_once_everything_is_bound() {
        let (store, key) = (Arc::<MemoryStore>::default(), EncryptionKey::generate());
        let (mine, other) = (Tenant::default(), Tenant::new("other"));
        put(&store, &key, 1, &mine, "a").await;
        put(&store, &key, 2, &other, "a").await;
        let old = store.sealed_rows(None, 10).await.unwrap();
        let done = keys(&store, &key).reseal().await.unwrap();
        assert_eq!((done.resealed, done.is_complete), (2, true), "{done:?}");
        assert_eq!(verify_sealed(&*store, Some(&key)).await.unwrap(), [""; 0]);
        // Another process follows the marker, and refuses the old envelope from a backup.
        let replica = of_another_process(&key);
        follow(&*store, &replica).await.unwrap();
        let at = SealedAt::Credential { tenant: &mine, name: "a" };
        assert_eq!(replica.open_at(&at, &old[0].sealed), Err(SealError::Unbound));
        // The row of one tenant in the place of another's.
        let rows = store.sealed_rows(None, 10).await.unwrap();
        let (one, two) = (&rows[0], &rows[1]);
        assert!(store.reseal(&one.location, &one.sealed, &two.sealed).await.unwrap());
        assert_eq!(replica.open_at(&at, &two.sealed), Err(SealError::Moved));
        let found = verify_sealed(&*store, Some(&key)).await.unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("credential 1: value was sealed for another"), "{found:?}");
        // Without a key an old envelope is seen, too.
        assert!(store.reseal(&one.location, &two.sealed, &old[0].sealed).await.unwrap());
        let found = verify_sealed(&*store, None).await.unwrap();
        assert!(found[0].contains("envelope version 1"), "{found:?}");
    }

    #[tokio::test]
    async fn values_are_bound_on_request_only_and_undecryptable_ones_stay_unbound() {
        let (store, key) = (Arc::<MemoryStore>::default(), EncryptionKey::generate());
        let tenant = Tenant::default();
        put(&store, &key, 1, &tenant, "a").await;
        let rows = store.sealed_rows(None, 10).await.unwrap();
        assert!(rows.iter().all(|row| !is_bound(&row.sealed)), "older replicas read it");
        let location = SealedLocation::Credential(CredentialId::new(1));
        let broken = SealedText::new("{}");
        assert!(store.reseal(&location, &rows[0].sealed, &broken).await.unwrap());
        let done = keys(&store, &key).reseal().await.unwrap();
        assert!(!done.is_complete && done.problems[0].starts_with("credential 1: "), "{done:?}");
        assert_eq!(key.binding(), Binding::Writing, "what is written from now on is bound");
        put(&store, &key, 1, &tenant, "a").await;
        let done = keys(&store, &key).reseal().await.unwrap();
        assert!(done.is_complete, "{done:?}");
        let again = keys(&store, &key).reseal().await.unwrap();
        assert_eq!((again.resealed, again.is_complete), (0, true), "a repeat changes nothing");
    }
}
