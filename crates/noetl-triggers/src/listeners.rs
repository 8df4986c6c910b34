//! Resolves the listener name of a push subscription to its subscription and settings.
//!
//! Documents may predate validation. A document that does not parse is skipped. A gateway gets the
//! settings of every document that has the required fields; this server itself serves only documents
//! without errors, in the compiled form that runtimes of pull subscriptions use too. A document version never changes, so each
//! is parsed once.

mod cache;
mod limits;
mod receive;
mod settings;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;
use noetl_catalog::SUBSCRIPTION_KIND;
use noetl_journal::{SubscriptionError, Subscriptions};
use noetl_model::{CatalogId, SubscriptionId, Tenant, Value};
use noetl_playbook::subscription::Mode;
use noetl_secrets::{CredentialError, Credentials, SecretRequest};
use noetl_store::{StoreError, TriggerStore};

use self::cache::{CachedListener, ListenerCache, READ_BYTES_MAX, read};
use self::settings::{SubscriptionSpec, text};

pub use receive::{IngressMessage, IngressService, ReceiveError, ReceiveOutcome};
pub use settings::{Listener, ListenerVerify, OpenListener};

/// Fields of a credential that may contain its secret, in order of precedence.
const SECRET_FIELDS: [&str; 5] = ["secret", "token", "value", "key", "password"];

/// Time a secret is cached for incoming messages. A replaced secret is rejected everywhere after at
/// most this time, and a burst of messages reads it once.
const SECRET_KEPT: Duration = Duration::from_secs(10);

/// Maximum number of cached secrets.
const SECRETS_MAX: usize = 1024;

#[derive(Debug, thiserror::Error)]
pub enum ListenerError {
    /// No subscription has this listener.
    #[error("No push subscription for ingress listener '{0}'")]
    Unknown(String),
    /// A required field of the subscription's document is missing or invalid.
    #[error("Subscription '{path}' has no usable '{field}'")]
    Incomplete { path: String, field: &'static str },
    /// The subscription's document has errors.
    #[error("Subscription '{path}' has errors: {reason}")]
    Invalid {
        path: String,
        /// First error of the document.
        reason: String,
    },
    /// The listener's credential contains no secret text.
    #[error("Credential '{0}' holds no secret text")]
    NoSecret(String),
    /// The listener's credential cannot be read.
    #[error(transparent)]
    Credential(CredentialError),
    /// The subscription could not be registered.
    #[error(transparent)]
    Subscription(SubscriptionError),
    #[error("store is unavailable")]
    Store(#[source] StoreError),
}

/// Secrets and the time each was read, by tenant and credential name.
type SecretCache = LruCache<(Tenant, String), (zeroize::Zeroizing<String>, Instant)>;

/// Looks up listeners by name. Cheap to clone.
#[derive(Clone)]
pub struct Listeners {
    store: Arc<dyn TriggerStore>,
    subscriptions: Subscriptions,
    credentials: Credentials,
    read: Arc<Mutex<ListenerCache>>,
    secrets: Arc<Mutex<SecretCache>>,
}

impl Listeners {
    pub(crate) fn new(
        store: Arc<dyn TriggerStore>,
        subscriptions: Subscriptions,
        credentials: Credentials,
    ) -> Self {
        let read = Arc::new(Mutex::new(ListenerCache::new(READ_BYTES_MAX)));
        let most = std::num::NonZeroUsize::new(SECRETS_MAX).expect("more than none");
        let secrets = Arc::new(Mutex::new(LruCache::new(most)));
        Self { store, subscriptions, credentials, read, secrets }
    }

    /// Returns the settings of a listener, for a gateway. Registers the subscription if necessary.
    /// Does not check its state, which a gateway requests separately.
    pub async fn get(
        &self,
        tenant: &Tenant,
        name: &str,
    ) -> Result<(Listener, SubscriptionId), ListenerError> {
        let (path, read) = self.find(tenant, name).await?;
        let document = SubscriptionSpec { path: &path, spec: &read.spec };
        let (mut listener, alias) = document.listener(name)?;
        if let Some(alias) = alias {
            listener.verify.secret = Some(self.secret(tenant, &alias, "gateway").await?);
        }
        let row = self.subscriptions.register(tenant, &listener.path).await;
        let row = row.map_err(ListenerError::Subscription)?;
        Ok((listener, row.id))
    }

    /// Returns a listener that this server serves itself. Registers nothing, because the sender is
    /// not authenticated yet. Returns [`ListenerError::Unknown`] for a subscription that pulls its
    /// messages, and [`ListenerError::Invalid`] for a document with errors.
    pub async fn open(&self, tenant: &Tenant, name: &str) -> Result<OpenListener, ListenerError> {
        let (path, read) = self.find(tenant, name).await?;
        if text(&read.spec, "mode").as_deref() == Some(Mode::Pull.as_str()) {
            return Err(ListenerError::Unknown(name.to_owned()));
        }
        let (mut verify, alias) = SubscriptionSpec { path: &path, spec: &read.spec }.verify()?;
        let subscription = match &read.subscription {
            Ok(subscription) => subscription.clone(),
            Err(reason) => return Err(ListenerError::Invalid { path, reason: reason.clone() }),
        };
        if let Some(alias) = alias {
            verify.secret = Some(self.kept_secret(tenant, alias).await?);
        }
        Ok(OpenListener { name: name.to_owned(), verify, subscription })
    }

    async fn kept_secret(&self, tenant: &Tenant, alias: String) -> Result<String, ListenerError> {
        let key = (tenant.clone(), alias);
        let kept = self.kept().get(&key).cloned();
        if let Some((secret, at)) = kept
            && at.elapsed() < SECRET_KEPT
        {
            return Ok(secret.to_string());
        }
        let secret = self.secret(tenant, &key.1, "ingress").await?;
        self.kept().put(key, (secret.clone().into(), Instant::now()));
        Ok(secret)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, SecretCache> {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the paths of other subscriptions whose latest version has this listener.
    pub(crate) async fn others(
        &self,
        tenant: &Tenant,
        path: &str,
        name: &str,
    ) -> Result<Vec<String>, StoreError> {
        let mut others = Vec::new();
        for head in self.store.newest_of(tenant, SUBSCRIPTION_KIND).await? {
            if head.path == path {
                continue;
            }
            let read = self.read(tenant, head.id).await?;
            if read.is_some_and(|read| read.listener == name) {
                others.push(head.path);
            }
        }
        Ok(others)
    }

    /// Returns the first subscription, by path, whose latest version has this listener.
    async fn find(
        &self,
        tenant: &Tenant,
        name: &str,
    ) -> Result<(String, Arc<CachedListener>), ListenerError> {
        for head in
            self.store.newest_of(tenant, SUBSCRIPTION_KIND).await.map_err(ListenerError::Store)?
        {
            let read = self.read(tenant, head.id).await.map_err(ListenerError::Store)?;
            if let Some(read) = read.filter(|read| read.listener == name) {
                return Ok((head.path, read));
            }
        }
        Err(ListenerError::Unknown(name.to_owned()))
    }

    /// Returns the parsed document. Reads its text only if the document is not cached.
    async fn read(
        &self,
        tenant: &Tenant,
        id: CatalogId,
    ) -> Result<Option<Arc<CachedListener>>, StoreError> {
        if let Some(known) = self.lock().get(id) {
            return Ok(known);
        }
        let Some(entry) = self.store.entry(tenant, id).await? else { return Ok(None) };
        let bytes = entry.content.len();
        // Parsing a large document takes long and must not block other requests.
        let reading = tokio::task::spawn_blocking(move || read(&entry.path, &entry.content));
        let read = reading.await.ok().flatten();
        self.lock().put(id, read.clone(), bytes);
        Ok(read)
    }

    /// Returns the secret text of a credential.
    async fn secret(
        &self,
        tenant: &Tenant,
        alias: &str,
        who: &str,
    ) -> Result<String, ListenerError> {
        let asking = SecretRequest {
            who: who.to_owned(),
            operation: "ingress",
            execution: None,
            parent: None,
            worker: None,
        };
        let revealed = self.credentials.reveal(tenant, alias, &asking).await;
        let (_, data) = revealed.map_err(ListenerError::Credential)?;
        secret_in(&data).ok_or_else(|| ListenerError::NoSecret(alias.to_owned()))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ListenerCache> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the value if it is text, or else the first secret field that is. Skips empty text, which
/// would accept every sender.
fn secret_in(data: &Value) -> Option<String> {
    let fields = SECRET_FIELDS.iter().filter_map(|field| data.get(field));
    let mut texts = std::iter::once(data).chain(fields).filter_map(Value::as_str);
    texts.find(|text| !text.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_secret_is_a_bare_text_or_the_first_field_that_holds_one() {
        let found = |data: Value| secret_in(&data);
        assert_eq!(found(json!("bare")).as_deref(), Some("bare"));
        let both = json!({"password": "last", "token": "second", "secret": 7});
        assert_eq!(found(both).as_deref(), Some("second"));
        assert_eq!(found(json!({"key": "k", "value": ""})).as_deref(), Some("k"));
        for none in [json!(""), json!(7), json!(null), json!(["a"]), json!({"other": "a"})] {
            assert_eq!(found(none.clone()), None, "{none}");
        }
    }
}
