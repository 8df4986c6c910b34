//! Another encryption key: what is wrapped by which, and wrapping all of it by the one in use.
//!
//! Only the small keys beside the records are wrapped again, one record at a time and only if it is
//! still as it was read. So it may be stopped anywhere, run again, and run beside others who write:
//! until it is done both keys are known, and every record can be read under one of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use noetl_store::{SealedPlace, SealedRow, Store};

use crate::credentials::CredentialError;
use crate::sealing::{EncryptionKey, WrappedBy, key_version};

/// Records read at a time.
pub(crate) const PAGE: usize = 200;

/// Records that are named when they cannot be read; the rest is counted.
pub(crate) const NAMED_MAX: usize = 100;

/// What is wrapped by which key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyTally {
    /// How many there are.
    pub total: u64,
    /// How many are wrapped by the key in use.
    pub current: u64,
    /// How many by the key before.
    pub previous: u64,
    /// How many by neither, or not at all.
    pub unreadable: u64,
    /// How many by what their key is called.
    pub versions: BTreeMap<String, u64>,
}

/// How far a change of the key has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyStatus {
    /// What the key in use is called.
    pub version: String,
    /// Whether the key before is known.
    pub has_previous: bool,
    /// Credentials.
    pub credentials: KeyTally,
    /// Entries of the keychain.
    pub keychain: KeyTally,
    /// Secrets of the installation.
    pub settings: KeyTally,
}

/// What one run has wrapped again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rotated {
    /// Credentials wrapped again.
    pub credentials: u64,
    /// Entries of the keychain wrapped again.
    pub keychain: u64,
    /// Secrets of the installation wrapped again.
    pub settings: u64,
    /// Records that were as they should be.
    pub current: u64,
    /// Records that somebody else wrote meanwhile.
    pub changed: u64,
    /// How many could not be read.
    pub unreadable: u64,
    /// Some of those, as `credential 12` or `keychain default/api:1:global`.
    pub unreadable_places: Vec<String>,
    /// Whether every record was looked at.
    pub is_complete: bool,
}

/// The service of the encryption key. Cheap to clone.
#[derive(Clone)]
pub struct Keys {
    pub(crate) store: Arc<dyn Store>,
    key: Option<EncryptionKey>,
}

impl Keys {
    /// Opens the service on a store.
    pub fn new(store: Arc<dyn Store>, key: Option<EncryptionKey>) -> Self {
        Self { store, key }
    }

    /// What is wrapped by which key, over all tenants.
    pub async fn status(&self) -> Result<KeyStatus, CredentialError> {
        let key = self.key()?;
        let mut status = KeyStatus {
            version: key.version().to_owned(),
            has_previous: key.has_previous(),
            credentials: KeyTally::default(),
            keychain: KeyTally::default(),
            settings: KeyTally::default(),
        };
        let mut after = None;
        while let Some(page) = self.page(after.as_ref()).await? {
            for row in &page {
                let tally = match row.place {
                    SealedPlace::Credential(_) => &mut status.credentials,
                    SealedPlace::Keychain(..) => &mut status.keychain,
                    SealedPlace::Setting(_) => &mut status.settings,
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
            after = page.into_iter().next_back().map(|row| row.place);
        }
        Ok(status)
    }

    /// Wraps up to `limit` records by the key in use. Those that are so already do not count.
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
            after = page.into_iter().next_back().map(|row| row.place);
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
                if !matches!(row.place, SealedPlace::Setting(_)) {
                    done.current += 1;
                }
                return Ok(());
            }
            Err(_) => {
                done.unreadable += 1;
                if done.unreadable_places.len() < NAMED_MAX {
                    done.unreadable_places.push(named(&row.place));
                }
                return Ok(());
            }
        };
        let kept = self.store.reseal(&row.place, &row.sealed, &wrapped).await;
        match (kept.map_err(CredentialError::Store)?, &row.place) {
            (false, _) => done.changed += 1,
            (true, SealedPlace::Credential(_)) => done.credentials += 1,
            (true, SealedPlace::Keychain(..)) => done.keychain += 1,
            (true, SealedPlace::Setting(_)) => done.settings += 1,
        }
        Ok(())
    }

    /// The next records, if there are any.
    pub(crate) async fn page(
        &self,
        after: Option<&SealedPlace>,
    ) -> Result<Option<Vec<SealedRow>>, CredentialError> {
        let page = self.store.sealed_rows(after, PAGE).await.map_err(CredentialError::Store)?;
        Ok((!page.is_empty()).then_some(page))
    }

    pub(crate) fn key(&self) -> Result<&EncryptionKey, CredentialError> {
        self.key.as_ref().ok_or(CredentialError::NoKey)
    }
}

pub(crate) fn named(place: &SealedPlace) -> String {
    match place {
        SealedPlace::Credential(id) => format!("credential {id}"),
        SealedPlace::Keychain(tenant, key) => format!("keychain {tenant}/{key}"),
        SealedPlace::Setting(name) => format!("setting {name}"),
    }
}
