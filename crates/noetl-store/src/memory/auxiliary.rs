//! Auxiliary data of the in-memory store.

use std::collections::{BTreeMap, BTreeSet};

use noetl_model::{AuditId, ExecutionId, ResultId, Tenant, Timestamp};

use crate::{
    AccessToken, AuditLink, Digest, Grant, KeychainEntry, NewResult, Object, Plugin, SealedText,
    SecretUse, StoredCredential, Variable,
};

/// Tables of auxiliary data, by the keys that the traits use.
#[derive(Debug, Default)]
pub(super) struct AuxiliaryTables {
    pub(super) credentials: BTreeMap<(Tenant, String), StoredCredential>,
    pub(super) keychain: BTreeMap<(Tenant, String), KeychainEntry>,
    /// Secrets of the installation, by name.
    pub(super) settings: BTreeMap<String, SealedText>,
    pub(super) audit: BTreeMap<AuditId, (Tenant, SecretUse)>,
    /// Links of the audit chain, in order; they outlive their uses.
    pub(super) links: Vec<(AuditLink, AuditId)>,
    pub(super) tokens: BTreeMap<String, AccessToken>,
    pub(super) grants: BTreeMap<String, Grant>,
    pub(super) variables: BTreeMap<(Tenant, ExecutionId, String), Variable>,
    pub(super) results: BTreeMap<ResultId, (Tenant, NewResult)>,
    pub(super) objects: BTreeMap<String, Object>,
    pub(super) plugins: BTreeMap<(String, i32), Plugin>,
    pub(super) blobs: BTreeMap<Digest, (Vec<u8>, Timestamp)>,
    pub(super) references: BTreeSet<(ExecutionId, Digest)>,
}

/// Returns `true` if an expiration time is at or before `now`.
pub(super) fn has_expired(expires_at: Option<Timestamp>, now: Timestamp) -> bool {
    expires_at.is_some_and(|at| at <= now)
}

/// Removes up to `limit` entries for which `goes` returns a rank, lowest rank first, and returns
/// their number.
pub(super) fn purge<K: Ord + Clone, V>(
    entries: &mut BTreeMap<K, V>,
    limit: usize,
    goes: impl Fn(&V) -> Option<Timestamp>,
) -> usize {
    let ranked = entries.iter().filter_map(|(key, value)| Some((goes(value)?, key.clone())));
    let mut ranked: Vec<(Timestamp, K)> = ranked.collect();
    ranked.sort();
    ranked.truncate(limit);
    for (_, key) in &ranked {
        entries.remove(key);
    }
    ranked.len()
}
