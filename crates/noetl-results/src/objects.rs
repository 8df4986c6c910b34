//! Objects and plugin modules shared by workers, and test suites of playbooks.

use std::sync::Arc;

use noetl_model::{Clock, Tenant, Timestamp, Value};
use noetl_store::{
    Digest, ExecutionDataStore, Object, ObjectSummary, Plugin, PluginSummary, StoreError,
};
use serde::{Deserialize, Serialize};

/// Reserved key prefix. Callers can neither read nor write keys below it directly.
const RESERVED: &str = ".noetl/";

/// Key prefix of dead letters. The tenant follows.
pub const DEAD_LETTERS: &str = "dead-letters/";

/// Maximum length of a key or path, in bytes.
const KEY_MAX: usize = 1024;

#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// No object, module, or suite has this key.
    #[error("{what} '{key}' not found")]
    NotFound {
        what: &'static str,
        /// Key or path of the requested item.
        key: String,
    },
    /// The module's digest differs from the requested one.
    #[error("module '{path}' has the digest {found}, not {asked}")]
    Digest {
        path: String,
        /// Digest of the stored module.
        found: Digest,
        asked: String,
    },
    /// The key belongs to another tenant.
    #[error("'{0}' is another tenant's")]
    Foreign(String),
    /// The key is empty, too long, or reserved.
    #[error("a key has 1 to {KEY_MAX} bytes and does not begin with '{RESERVED}'")]
    Key,
    /// The stored content cannot be parsed.
    #[error("the {what} '{key}' cannot be read")]
    Damaged { what: &'static str, key: String },
    #[error("store is unavailable")]
    Store(#[source] StoreError),
}

/// Test suite of a playbook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Suite {
    /// Path of the tested playbook.
    pub playbook_path: String,
    pub tests: Vec<Value>,
    /// Free-form metadata from the author.
    pub metadata: Value,
    /// Time of the last update, set by the server.
    pub updated_at: Timestamp,
}

/// Stores objects, modules, and suites. Cheap to clone.
#[derive(Clone)]
pub struct Objects {
    store: Arc<dyn ExecutionDataStore>,
    clock: Arc<dyn Clock>,
}

impl Objects {
    pub(crate) fn new(store: Arc<dyn ExecutionDataStore>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Stores an object, replacing any with the same key and tenant. With a tenant, fails if the
    /// key names another one.
    pub async fn put(
        &self,
        whose: Option<&Tenant>,
        key: &str,
        media_type: &str,
        bytes: Vec<u8>,
    ) -> Result<ObjectSummary, ObjectError> {
        check(key)?;
        check_owner(whose, key)?;
        let put = self.store.put_object(&stored_key(whose, key), media_type, bytes).await;
        let summary = put.map_err(ObjectError::Store)?;
        Ok(ObjectSummary { key: key.to_owned(), ..summary })
    }

    /// Returns the tenant's object with this key. With a tenant, fails if the key names another
    /// one.
    pub async fn get(&self, whose: Option<&Tenant>, key: &str) -> Result<Object, ObjectError> {
        check(key)?;
        check_owner(whose, key)?;
        let stored = stored_key(whose, key);
        let mut found = self.store.object(&stored).await.map_err(ObjectError::Store)?;
        // Dead letters of earlier versions contain their tenant in another form.
        if found.is_none() && stored != key && is_dead_letter_of(whose, key) {
            found = self.store.object(key).await.map_err(ObjectError::Store)?;
        }
        let missing = || ObjectError::NotFound { what: "object", key: key.to_owned() };
        let object = found.ok_or_else(missing)?;
        let summary = ObjectSummary { key: key.to_owned(), ..object.summary };
        Ok(Object { summary, ..object })
    }

    /// Stores a module, replacing any with the same path and version.
    pub async fn put_plugin(
        &self,
        path: &str,
        version: i32,
        media_type: &str,
        bytes: Vec<u8>,
    ) -> Result<PluginSummary, ObjectError> {
        check(path)?;
        let kept = self.store.put_plugin(path, version, media_type, bytes).await;
        kept.map_err(ObjectError::Store)
    }

    /// Returns the module at a path: the given version or else the highest. Fails if `digest` is
    /// given and differs.
    pub async fn plugin(
        &self,
        path: &str,
        version: Option<i32>,
        digest: Option<&str>,
    ) -> Result<Plugin, ObjectError> {
        let found = self.store.plugin(path, version).await.map_err(ObjectError::Store)?;
        let missing = || ObjectError::NotFound { what: "module", key: path.to_owned() };
        let plugin = found.ok_or_else(missing)?;
        let has = plugin.summary.digest;
        match digest.map(|asked| asked.trim().trim_start_matches("sha256:")) {
            Some(asked) if !asked.eq_ignore_ascii_case(&has.to_string()) => {
                let asked = asked.chars().take(100).collect();
                Err(ObjectError::Digest { path: path.to_owned(), found: has, asked })
            }
            _ => Ok(plugin),
        }
    }

    /// Stores a suite, replacing any with the same ID.
    pub async fn put_suite(
        &self,
        tenant: &Tenant,
        id: &str,
        suite: Suite,
    ) -> Result<Suite, ObjectError> {
        check(id)?;
        let suite = Suite { updated_at: self.clock.now(), ..suite };
        let damaged = |_| ObjectError::Damaged { what: "suite", key: id.to_owned() };
        let bytes = serde_json::to_vec(&suite).map_err(damaged)?;
        let put = self.store.put_object(&suite_key(tenant, id), "application/json", bytes).await;
        put.map(|_| suite).map_err(ObjectError::Store)
    }

    /// Returns a suite by ID.
    pub async fn suite(&self, tenant: &Tenant, id: &str) -> Result<Suite, ObjectError> {
        let found = self.store.object(&suite_key(tenant, id)).await.map_err(ObjectError::Store)?;
        let missing = || ObjectError::NotFound { what: "suite", key: id.to_owned() };
        let bytes = found.ok_or_else(missing)?.bytes;
        let damaged = |_| ObjectError::Damaged { what: "suite", key: id.to_owned() };
        serde_json::from_slice(&bytes).map_err(damaged)
    }

    /// Deletes a suite. Fails if it does not exist.
    pub async fn delete_suite(&self, tenant: &Tenant, id: &str) -> Result<(), ObjectError> {
        let removed = self.store.delete_object(&suite_key(tenant, id)).await;
        match removed.map_err(ObjectError::Store)? {
            true => Ok(()),
            false => Err(ObjectError::NotFound { what: "suite", key: id.to_owned() }),
        }
    }
}

fn check(key: &str) -> Result<(), ObjectError> {
    let is_fine = (1..=KEY_MAX).contains(&key.len()) && !key.starts_with(RESERVED);
    if is_fine { Ok(()) } else { Err(ObjectError::Key) }
}

fn check_owner(whose: Option<&Tenant>, key: &str) -> Result<(), ObjectError> {
    match whose.is_none_or(|tenant| is_of(key, tenant)) {
        true => Ok(()),
        false => Err(ObjectError::Foreign(key.to_owned())),
    }
}

/// Returns `true` if a tenant may use a key. A key that names a tenant belongs to that tenant only.
fn is_of(key: &str, tenant: &Tenant) -> bool {
    let tenant = tenant.as_str();
    let letter = key.strip_prefix(DEAD_LETTERS);
    let is_own = |rest: &str| rest.strip_prefix(tenant).is_some_and(|rest| rest.starts_with('/'));
    !key.starts_with(RESERVED)
        && owner(key).is_none_or(|named| named == tenant)
        && letter.is_none_or(is_own)
}

/// Returns `true` if this is a stored key of the tenant.
pub(crate) fn is_stored_for(key: &str, tenant: &Tenant) -> bool {
    match owner(key) {
        _ if key.starts_with(RESERVED) => key.starts_with(&scope(tenant)),
        Some(named) => named == tenant.as_str(),
        None => *tenant == Tenant::default(),
    }
}

/// Returns the tenant named in a key.
pub(crate) fn owner(key: &str) -> Option<&str> {
    key.split('/').find_map(|part| part.strip_prefix("tenant="))
}

/// Returns the key under which the store has an object. Keys that name their tenant, and keys of
/// the default tenant, are used as they are; keys of other tenants get a prefix that makes them
/// unique. System pools and admins of the default tenant address the tenant that a key names, or
/// else the default tenant.
fn stored_key(whose: Option<&Tenant>, key: &str) -> String {
    match whose {
        Some(tenant) if owner(key).is_none() && *tenant != Tenant::default() => {
            format!("{}{key}", scope(tenant))
        }
        Some(_) | None => key.to_owned(),
    }
}

/// Returns the key prefix of a tenant. The length in it keeps prefixes unambiguous, because a
/// tenant's name may contain any character.
fn scope(tenant: &Tenant) -> String {
    let tenant = tenant.as_str();
    format!("{RESERVED}objects/{}:{tenant}/", tenant.len())
}

/// Returns `true` if a key has the form that dead letters of this tenant had before keys were
/// scoped: exactly `dead-letters/<tenant>/<subscription>/<digest>`.
fn is_dead_letter_of(whose: Option<&Tenant>, key: &str) -> bool {
    let rest = whose.and_then(|tenant| {
        key.strip_prefix(DEAD_LETTERS)?.strip_prefix(tenant.as_str())?.strip_prefix('/')
    });
    let parts = rest.and_then(|rest| rest.split_once('/'));
    parts.is_some_and(|(id, digest)| id.parse::<i64>().is_ok() && !digest.contains('/'))
}

/// Returns the key of a suite, which contains its tenant. The length in it keeps keys unambiguous,
/// because a tenant's name may contain any character.
fn suite_key(tenant: &Tenant, id: &str) -> String {
    let tenant = tenant.as_str();
    format!("{RESERVED}suites/{}:{tenant}/{id}.json", tenant.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_of_two_tenants_never_share_a_key() {
        let key = |tenant: &str, id: &str| suite_key(&Tenant::new(tenant), id);
        assert_ne!(key("a", "b/c"), key("a/b", "c"));
        assert_ne!(key("a", "x"), key("b", "x"));
    }

    #[test]
    fn a_key_that_names_another_tenant_is_that_one_s() {
        let tenant = Tenant::new("acme");
        assert!(is_of("noetl/tenant=acme/execution=1/results/a", &tenant));
        assert!(is_of("noetl/execution=1/results/a", &tenant));
        assert!(!is_of("noetl/tenant=other/execution=1/results/a", &tenant));
        assert!(!is_of("noetl/tenant=acme2/execution=1/results/a", &tenant));
        assert!(is_of("dead-letters/acme/1/d", &tenant));
        assert!(!is_of("dead-letters/other/1/d", &tenant));
        assert!(!is_of("dead-letters/acme2/1/d", &tenant));
        assert!(!is_of(&format!("{}a", scope(&tenant)), &tenant));
    }

    #[test]
    fn keys_of_two_tenants_never_meet_in_the_store() {
        let (default, acme) = (Tenant::default(), Tenant::new("acme"));
        let (slashed, other) = (Tenant::new("acme/x"), Tenant::new("other"));
        let tenants = [&default, &acme, &slashed, &other];
        let keys = ["a", "x/a", "noetl/execution=1/results/a"];
        let mut stored = std::collections::BTreeSet::new();
        for tenant in tenants {
            for key in keys {
                let key = stored_key(Some(tenant), key);
                for whose in tenants {
                    assert_eq!(is_stored_for(&key, whose), whose == tenant, "{key} {whose}");
                }
                assert!(stored.insert(key.clone()), "{key}");
            }
        }
        assert_eq!(stored_key(None, "a"), stored_key(Some(&default), "a"));
        let named = "noetl/tenant=acme/a";
        assert_eq!(stored_key(None, named), stored_key(Some(&acme), named));
    }

    #[test]
    fn dead_letters_of_earlier_versions_are_read_by_their_tenant_only() {
        let (acme, slashed) = (Tenant::new("acme"), Tenant::new("acme/7"));
        assert!(is_dead_letter_of(Some(&acme), "dead-letters/acme/7/d1"));
        assert!(!is_dead_letter_of(Some(&acme), "dead-letters/acme/7/8/d1"));
        assert!(is_dead_letter_of(Some(&slashed), "dead-letters/acme/7/8/d1"));
        assert!(!is_dead_letter_of(Some(&acme), "dead-letters/other/7/d1"));
        assert!(!is_dead_letter_of(None, "dead-letters/acme/7/d1"));
    }

    #[test]
    fn reserved_and_empty_keys_are_refused() {
        assert!(check("a/b").is_ok());
        let long = "x".repeat(KEY_MAX + 1);
        for key in ["", ".noetl/suites/1:a/b.json", long.as_str()] {
            assert!(check(key).is_err(), "{key}");
        }
    }
}
