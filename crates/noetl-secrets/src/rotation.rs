//! Rotates the encryption key: counts records by key, and rewraps all of them with the current one.
//!
//! Only the small record keys are rewrapped, one record at a time, and only if the record is
//! unchanged since it was read. So rotation may be interrupted, repeated, and run concurrently with
//! writers: until it is done, both keys are configured, and every record can be read with one of
//! them.

use std::collections::BTreeMap;
use std::sync::Arc;

use noetl_store::{SealedLocation, SealedRow, SecretsStore};

use crate::credential_error::CredentialError;
use crate::sealing::{EncryptionKey, WrappedBy, key_version};

/// Records read at a time.
pub(crate) const PAGE: usize = 200;

/// Maximum number of unreadable records that are listed; further ones are only counted.
pub(crate) const NAMED_MAX: usize = 100;

/// Number of records by wrapping key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyUsage {
    /// Number of records of this kind.
    pub total: u64,
    /// Number of records wrapped by the current key.
    pub current: u64,
    /// Number of records wrapped by the previous key.
    pub previous: u64,
    /// Number of records wrapped by neither key, or not readable.
    pub unreadable: u64,
    /// Number of records by the version name of their key.
    pub versions: BTreeMap<String, u64>,
}

/// Progress of a key rotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyStatus {
    /// Version name of the current key.
    pub version: String,
    /// Whether the previous key is configured.
    pub has_previous: bool,
    /// Tally of the stored credentials.
    pub credentials: KeyUsage,
    /// Tally of the keychain entries.
    pub keychain: KeyUsage,
    /// Tally of the secrets of the installation.
    pub settings: KeyUsage,
}

/// Result of one rotation run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rotated {
    pub credentials: u64,
    /// Number of keychain entries rewrapped.
    pub keychain: u64,
    /// Number of secrets of the installation rewrapped.
    pub settings: u64,
    /// Number of credentials and keychain entries that were already wrapped by the current key.
    pub current: u64,
    /// Number of records skipped because another writer changed them.
    pub changed: u64,
    /// Number of records that could not be read.
    pub unreadable: u64,
    /// Up to 100 of the unreadable records, as `credential 12` or `keychain default/api:1:global`.
    pub unreadable_places: Vec<String>,
    /// Whether every record was visited.
    pub is_complete: bool,
}

/// Manages the encryption key. Cheap to clone.
#[derive(Clone)]
pub struct KeyRotation {
    pub(crate) store: Arc<dyn SecretsStore>,
    key: Option<EncryptionKey>,
}

impl KeyRotation {
    /// Creates the service on a store.
    pub fn new(store: Arc<dyn SecretsStore>, key: Option<EncryptionKey>) -> Self {
        Self { store, key }
    }

    /// Returns the number of records by key, over all tenants.
    pub async fn status(&self) -> Result<KeyStatus, CredentialError> {
        let key = self.key()?;
        let mut status = KeyStatus {
            version: key.version().to_owned(),
            has_previous: key.has_previous(),
            credentials: KeyUsage::default(),
            keychain: KeyUsage::default(),
            settings: KeyUsage::default(),
        };
        let mut after = None;
        while let Some(page) = self.page(after.as_ref()).await? {
            for row in &page {
                let tally = match row.location {
                    SealedLocation::Credential(_) => &mut status.credentials,
                    SealedLocation::Keychain(..) => &mut status.keychain,
                    SealedLocation::Setting(_) => &mut status.settings,
                };
                tally.total += 1;
                match key.wrapped_by(&row.sealed) {
                    Ok(WrappedBy::Current) => tally.current += 1,
                    Ok(WrappedBy::Previous) => tally.previous += 1,
                    Err(_) => tally.unreadable += 1,
                }
                if let Some(version) = key_version(&row.sealed) {
                    *tally.versions.entry(version).or_default() += 1;
                }
            }
            after = page.into_iter().next_back().map(|row| row.location);
        }
        Ok(status)
    }

    /// Rewraps up to `limit` records with the current key. Records that already are don't count.
    pub async fn rotate(&self, limit: u64) -> Result<Rotated, CredentialError> {
        let key = self.key()?;
        let mut done = Rotated::default();
        let mut after = None;
        while let Some(page) = self.page(after.as_ref()).await? {
            for row in &page {
                if done.credentials + done.keychain + done.settings >= limit {
                    return Ok(done);
                }
                self.rewrap(key, row, &mut done).await?;
            }
            after = page.into_iter().next_back().map(|row| row.location);
        }
        done.is_complete = true;
        Ok(done)
    }

    async fn rewrap(
        &self,
        key: &EncryptionKey,
        row: &SealedRow,
        done: &mut Rotated,
    ) -> Result<(), CredentialError> {
        let wrapped = match key.rewrap(&row.sealed) {
            Ok(Some(wrapped)) => wrapped,
            Ok(None) => {
                if !matches!(row.location, SealedLocation::Setting(_)) {
                    done.current += 1;
                }
                return Ok(());
            }
            Err(_) => {
                done.unreadable += 1;
                if done.unreadable_places.len() < NAMED_MAX {
                    done.unreadable_places.push(named(&row.location));
                }
                return Ok(());
            }
        };
        let kept = self.store.reseal(&row.location, &row.sealed, &wrapped).await;
        match (kept.map_err(CredentialError::Store)?, &row.location) {
            (false, _) => done.changed += 1,
            (true, SealedLocation::Credential(_)) => done.credentials += 1,
            (true, SealedLocation::Keychain(..)) => done.keychain += 1,
            (true, SealedLocation::Setting(_)) => done.settings += 1,
        }
        Ok(())
    }

    /// Returns the next page of records, or `None` after the last.
    pub(crate) async fn page(
        &self,
        after: Option<&SealedLocation>,
    ) -> Result<Option<Vec<SealedRow>>, CredentialError> {
        let page = self.store.sealed_rows(after, PAGE).await.map_err(CredentialError::Store)?;
        Ok((!page.is_empty()).then_some(page))
    }

    pub(crate) fn key(&self) -> Result<&EncryptionKey, CredentialError> {
        self.key.as_ref().ok_or(CredentialError::NoKey)
    }
}

pub(crate) fn named(location: &SealedLocation) -> String {
    match location {
        SealedLocation::Credential(id) => format!("credential {id}"),
        SealedLocation::Keychain(tenant, key) => format!("keychain {tenant}/{key}"),
        SealedLocation::Setting(name) => format!("setting {name}"),
    }
}
