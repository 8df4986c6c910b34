//! Placeholders that resolve. Only the control plane creates and verifies them.
//!
//! The tag of a placeholder is a MAC over key ID, tenant, execution, alias, and field. The key is
//! created once, stored encrypted under the encryption key, and shared by all replicas, so it
//! outlives rotation of the encryption key. A placeholder gets a tag only for an alias that was
//! given to the execution: a valid tag proves that the execution already had the secret.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use aes_gcm::aead::OsRng;
use aes_gcm::aead::rand_core::RngCore as _;
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use hmac::{Hmac, Mac as _};
use lru::LruCache;
use noetl_model::placeholder::{
    Placeholder, Tag, edit_map, map_has_tag, placeholders_in, tagged, text_has_tag,
};
use noetl_model::{ExecutionId, Map, Tenant, Value};
use noetl_store::{SealedText, SecretsStore, StoreError};
use sha2::Sha256;
use tracing::warn;
use zeroize::Zeroizing;

use crate::sealing::{EncryptionKey, SealedAt};

/// Name prefix of the stored keys; the key ID follows.
const SETTING: &str = "placeholder-key";

/// ID of the key that signs new placeholders.
const CURRENT: u32 = 1;

/// Largest key ID that is read from the store, so arbitrary tags cause few reads.
const KEY_MAX: u32 = 16;

const KEY_BYTES: usize = 32;

/// Length of the MAC in a tag, in bytes.
const MAC_BYTES: usize = 16;

/// Maximum number of executions whose aliases are remembered. An evicted execution gets
/// placeholders without tags until it uses a credential again.
const EXECUTIONS_MAX: NonZeroUsize = NonZeroUsize::new(65_536).expect("it is not zero");

type PlaceholderKey = Zeroizing<[u8; KEY_BYTES]>;

/// Creates and verifies placeholders. Cheap to clone; clones share keys and grants.
#[derive(Clone)]
pub struct Placeholders {
    store: Arc<dyn SecretsStore>,
    encryption: Option<EncryptionKey>,
    keys: Arc<RwLock<BTreeMap<u32, Arc<PlaceholderKey>>>>,
    /// Aliases given to each execution by this process.
    grants: Arc<Mutex<LruCache<ExecutionId, Arc<BTreeSet<String>>>>>,
}

/// Creates placeholders for one execution.
pub struct Minter {
    key: Arc<PlaceholderKey>,
    tenant: Tenant,
    execution: ExecutionId,
    aliases: Arc<BTreeSet<String>>,
}

impl Minter {
    /// Returns the placeholder of a field, if its alias was given to the execution.
    pub fn mint(&self, alias: &str, field: &str) -> Option<String> {
        let is_granted = self.aliases.contains(alias);
        is_granted.then(|| mint(&self.key, &self.tenant, self.execution, alias, field)).flatten()
    }
}

impl Placeholders {
    pub(crate) fn new(store: Arc<dyn SecretsStore>, encryption: Option<EncryptionKey>) -> Self {
        let grants = Arc::new(Mutex::new(LruCache::new(EXECUTIONS_MAX)));
        Self { store, encryption, keys: Arc::default(), grants }
    }

    /// Records that a secret was given to an execution under this alias. Placeholders of the secret
    /// resolve in that execution from then on.
    pub(crate) async fn grant(
        &self,
        execution: ExecutionId,
        alias: &str,
    ) -> Result<(), StoreError> {
        self.current().await?;
        self.note_grant(execution, alias);
        Ok(())
    }

    fn note_grant(&self, execution: ExecutionId, alias: &str) {
        let mut grants = self.grants();
        let aliases = grants.get_or_insert_mut(execution, Arc::default);
        if !aliases.contains(alias) {
            Arc::make_mut(aliases).insert(alias.to_owned());
        }
    }

    /// Returns a minter for an execution, or `None` if the execution was given no secret.
    pub fn minter(&self, tenant: &Tenant, execution: ExecutionId) -> Option<Minter> {
        let aliases = self.grants().get(&execution).cloned()?;
        let key = self.cached(CURRENT)?;
        Some(Minter { key, tenant: tenant.clone(), execution, aliases })
    }

    /// Returns the alias and field of a placeholder, or `None` if it was not created for this
    /// execution.
    pub(crate) async fn verify(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        placeholder: &Placeholder,
    ) -> Result<Option<(String, String)>, StoreError> {
        let Some(tag) = &placeholder.tag else { return Ok(None) };
        let Some(key) = self.key(tag.key).await? else { return Ok(None) };
        let found = verified(&key, tenant, execution, placeholder);
        Ok(found.map(|(alias, field)| (alias.to_owned(), field.to_owned())))
    }

    /// Replaces the placeholders of one execution in a map by those of another. Others are
    /// unchanged.
    pub async fn reissue_map(
        &self,
        tenant: &Tenant,
        (from, to): (ExecutionId, ExecutionId),
        map: &mut Map,
    ) -> Result<(), StoreError> {
        if !map_has_tag(map) {
            return Ok(());
        }
        let keys = self.all().await?;
        edit_map(map, &mut |text| self.reissued(&keys, tenant, (from, to), text));
        Ok(())
    }

    /// Returns a text with the placeholders of one execution replaced by those of another, or `None`
    /// if it has none.
    pub async fn reissue_text(
        &self,
        tenant: &Tenant,
        of: (ExecutionId, ExecutionId),
        text: &str,
    ) -> Result<Option<String>, StoreError> {
        if !text_has_tag(text) {
            return Ok(None);
        }
        let keys = self.all().await?;
        Ok(self.reissued(&keys, tenant, of, text))
    }

    fn reissued(
        &self,
        keys: &BTreeMap<u32, Arc<PlaceholderKey>>,
        tenant: &Tenant,
        (from, to): (ExecutionId, ExecutionId),
        text: &str,
    ) -> Option<String> {
        let current = keys.get(&CURRENT)?;
        let (mut made, mut at) = (String::new(), 0);
        for found in placeholders_in(text) {
            let key = found.tag.as_ref().and_then(|tag| keys.get(&tag.key));
            let read = key.and_then(|key| verified(key, tenant, from, &found));
            let Some((alias, field)) = read else { continue };
            let Some(other) = mint(current, tenant, to, alias, field) else { continue };
            self.note_grant(to, alias);
            made.push_str(&text[at..found.range.start]);
            made.push_str(&other);
            at = found.range.end;
        }
        (at > 0).then(|| made + &text[at..])
    }

    /// Returns all cached keys, after loading the current one.
    async fn all(&self) -> Result<BTreeMap<u32, Arc<PlaceholderKey>>, StoreError> {
        self.current().await?;
        Ok(self.keys.read().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Loads the current key, and creates it if none is stored. Does nothing without an encryption
    /// key.
    async fn current(&self) -> Result<(), StoreError> {
        if self.cached(CURRENT).is_some() {
            return Ok(());
        }
        let Some(encryption) = &self.encryption else { return Ok(()) };
        if self.key(CURRENT).await?.is_some() {
            return Ok(());
        }
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        OsRng.fill_bytes(&mut *key);
        let text = Value::from(BASE64_STANDARD.encode(*key));
        let name = setting(CURRENT);
        let sealed = encryption.seal_at(&SealedAt::Setting(&name), &text);
        let Ok(sealed) = sealed else { return Ok(()) };
        let kept = self.store.put_sealed_setting(&name, &sealed).await?;
        self.open(CURRENT, &kept);
        Ok(())
    }

    async fn key(&self, id: u32) -> Result<Option<Arc<PlaceholderKey>>, StoreError> {
        if let Some(key) = self.cached(id) {
            return Ok(Some(key));
        }
        if self.encryption.is_none() || !(1..=KEY_MAX).contains(&id) {
            return Ok(None);
        }
        let found = self.store.sealed_setting(&setting(id)).await?;
        Ok(found.and_then(|sealed| self.open(id, &sealed)))
    }

    fn open(&self, id: u32, sealed: &SealedText) -> Option<Arc<PlaceholderKey>> {
        let name = setting(id);
        let opened = self.encryption.as_ref()?.open_at(&SealedAt::Setting(&name), sealed);
        let bytes = match opened {
            Ok(value) => value.as_str().and_then(|text| BASE64_STANDARD.decode(text).ok()),
            Err(error) => {
                warn!(key = id, %error, "failed to decrypt placeholder key, placeholders do not resolve");
                return None;
            }
        };
        let bytes = Zeroizing::new(bytes?);
        let key = Arc::new(Zeroizing::new(<[u8; KEY_BYTES]>::try_from(&**bytes).ok()?));
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        Some(keys.entry(id).or_insert(key).clone())
    }

    fn cached(&self, id: u32) -> Option<Arc<PlaceholderKey>> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    fn grants(&self) -> MutexGuard<'_, LruCache<ExecutionId, Arc<BTreeSet<String>>>> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn setting(id: u32) -> String {
    format!("{SETTING}/{id}")
}

/// Returns the alias and field that the placeholder's MAC authenticates.
fn verified<'p>(
    key: &PlaceholderKey,
    tenant: &Tenant,
    execution: ExecutionId,
    placeholder: &'p Placeholder,
) -> Option<(&'p str, &'p str)> {
    let tag = placeholder.tag.as_ref()?;
    let given = BASE64_URL_SAFE_NO_PAD.decode(&tag.mac).ok()?;
    if given.len() != MAC_BYTES {
        return None;
    }
    placeholder.readings().find(|(alias, field)| {
        let mac = authenticate(key, tag.key, tenant, execution, (alias, field));
        mac.is_some_and(|mac| mac.verify_truncated_left(&given).is_ok())
    })
}

fn mint(
    key: &PlaceholderKey,
    tenant: &Tenant,
    execution: ExecutionId,
    alias: &str,
    field: &str,
) -> Option<String> {
    let mac = authenticate(key, CURRENT, tenant, execution, (alias, field))?;
    let mac = mac.finalize().into_bytes();
    let mac = BASE64_URL_SAFE_NO_PAD.encode(&mac[..MAC_BYTES]);
    tagged(alias, field, &Tag { key: CURRENT, mac })
}

/// Computes the MAC. Each part is preceded by its length, so different parts never give the same
/// bytes.
fn authenticate(
    key: &PlaceholderKey,
    id: u32,
    tenant: &Tenant,
    execution: ExecutionId,
    (alias, field): (&str, &str),
) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_slice()).ok()?;
    let (id, execution) = (id.to_le_bytes(), execution.get().to_le_bytes());
    let parts: [&[u8]; 6] = [
        b"noetl-placeholder-v1",
        &id,
        tenant.as_str().as_bytes(),
        &execution,
        alias.as_bytes(),
        field.as_bytes(),
    ];
    for part in parts {
        mac.update(&(part.len() as u64).to_le_bytes());
        mac.update(part);
    }
    Some(mac)
}

#[cfg(test)]
mod tests {
    use noetl_model::placeholder::without_tags;
    use noetl_store::MemoryStore;

    use super::*;

    fn id(number: i64) -> ExecutionId {
        ExecutionId::new(number)
    }

    fn placeholders(store: &Arc<MemoryStore>, key: &EncryptionKey) -> Placeholders {
        Placeholders::new(store.clone(), Some(key.clone()))
    }

    async fn read(
        of: &Placeholders,
        tenant: &Tenant,
        execution: i64,
        text: &str,
    ) -> Option<(String, String)> {
        let found = placeholders_in(text).remove(0);
        of.verify(tenant, id(execution), &found).await.expect("the store answers")
    }

    #[tokio::test]
    async fn a_placeholder_is_bound_to_tenant_execution_alias_and_field() {
        let (store, key) = (Arc::<MemoryStore>::default(), EncryptionKey::generate());
        let one = placeholders(&store, &key);
        let (mine, other) = (Tenant::default(), Tenant::new("other"));
        assert!(one.minter(&mine, id(7)).is_none(), "nothing was handed out");
        one.grant(id(7), "my.api").await.unwrap();
        let minter = one.minter(&mine, id(7)).expect("it has an alias");
        let text = minter.mint("my.api", "x.y").expect("a placeholder");
        assert_eq!(minter.mint("my.api", "x.y"), Some(text.clone()), "it is always the same");
        assert_eq!(minter.mint("other", "x.y"), None, "it was not handed out");
        assert_eq!(without_tags(&text), "«secret:my.api.x.y»");
        let named = Some(("my.api".to_owned(), "x.y".to_owned()));
        assert_eq!(read(&one, &mine, 7, &text).await, named);
        // Another replica reads the same key.
        let replica = placeholders(&store, &key);
        assert_eq!(read(&replica, &mine, 7, &text).await, named);
        assert_eq!(read(&one, &mine, 8, &text).await, None, "another execution");
        assert_eq!(read(&one, &other, 7, &text).await, None, "another tenant");
        for changed in [
            text.replace("x.y", "x.z"),
            text.replace("my.api", "my.app"),
            text.replace("~1.", "~2."),
            text.replace("~1.", "~9999."),
            text.to_lowercase(),
            without_tags(&text).into_owned(),
        ] {
            assert_eq!(read(&one, &mine, 7, &changed).await, None, "{changed}");
        }
    }

    #[tokio::test]
    async fn placeholders_outlive_rotation_of_the_encryption_key() {
        let (store, old) = (Arc::<MemoryStore>::default(), EncryptionKey::generate());
        let tenant = Tenant::default();
        let before = placeholders(&store, &old);
        before.grant(id(7), "api").await.unwrap();
        let text = before.minter(&tenant, id(7)).unwrap().mint("api", "token").unwrap();
        let new = EncryptionKey::generate().with_version("v2");
        let both = new.clone().with_previous(&old);
        let keys = crate::rotation::KeyRotation::new(store.clone(), Some(both));
        let rotated = keys.rotate(100).await.unwrap();
        assert_eq!((rotated.settings, rotated.is_complete), (1, true));
        let after = placeholders(&store, &new);
        assert!(read(&after, &tenant, 7, &text).await.is_some(), "without the key before");
        after.grant(id(7), "api").await.unwrap();
        assert_eq!(after.minter(&tenant, id(7)).unwrap().mint("api", "token"), Some(text));
    }

    #[tokio::test]
    async fn reissuing_checks_the_source_and_leaves_everything_else() {
        let (store, key) = (Arc::<MemoryStore>::default(), EncryptionKey::generate());
        let (of, tenant) = (placeholders(&store, &key), Tenant::default());
        for execution in [1, 5] {
            of.grant(id(execution), "api").await.unwrap();
        }
        let minted = |execution| of.minter(&tenant, id(execution)).unwrap().mint("api", "token");
        let (good, foreign) = (minted(1).unwrap(), minted(5).unwrap());
        let text = format!("a {good} b «secret:api.token» c {foreign}");
        let made = of.reissue_text(&tenant, (id(1), id(2)), &text).await.unwrap().unwrap();
        assert_eq!(without_tags(&made), without_tags(&text));
        let found = placeholders_in(&made);
        assert!(of.verify(&tenant, id(2), &found[0]).await.unwrap().is_some());
        assert!(of.verify(&tenant, id(2), &found[1]).await.unwrap().is_none());
        assert!(of.verify(&tenant, id(2), &found[2]).await.unwrap().is_none());
        assert!(of.verify(&tenant, id(1), &found[0]).await.unwrap().is_none());
        assert!(of.minter(&tenant, id(2)).unwrap().mint("api", "token").is_some(), "it was passed");
        assert_eq!(of.reissue_text(&tenant, (id(1), id(2)), "«secret:a.b»").await.unwrap(), None);
        let mut map = Map::from_iter([(good.clone(), Value::from(vec![good.clone()]))]);
        of.reissue_map(&tenant, (id(1), id(2)), &mut map).await.unwrap();
        let other = minted(2).unwrap();
        assert_eq!(map, Map::from_iter([(other.clone(), Value::from(vec![other]))]));
    }

    #[tokio::test]
    async fn without_an_encryption_key_nothing_resolves() {
        let of = Placeholders::new(Arc::<MemoryStore>::default(), None);
        of.grant(id(1), "api").await.unwrap();
        assert!(of.minter(&Tenant::default(), id(1)).is_none());
    }
}
