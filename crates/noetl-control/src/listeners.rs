//! Which subscription a gateway's listener is, and what the gateway has to know of it.
//!
//! Documents are looked at as they are: one that cannot be read is passed over, one that lacks
//! something is refused when it is asked for, because both may have been in the catalog before there
//! was a check. A document never changes, so each is read once.

mod directives;
mod documents;
mod limits;
mod message;
mod receive;
mod settings;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;
use noetl_model::{CatalogId, SubscriptionId, Tenant, Value};
use noetl_store::{Store, StoreError};

use self::documents::{Documents, READ_BYTES_MAX, Read, read};
use self::settings::Document;
use crate::audit::Asking;
use crate::credentials::{CredentialError, Credentials};
use crate::subscriptions::{KIND, SubscriptionError, Subscriptions};

pub use message::{Message, MessageError};
pub use receive::{Ingress, ReceiveError, TakenIn};
pub use settings::{Dedup, Listener, ListenerVerify};

/// Fields of a credential that may hold its secret, the first that does.
const SECRET_FIELDS: [&str; 5] = ["secret", "token", "value", "key", "password"];

/// How long a secret is used for what comes in without being read again. Whoever changes one has
/// it refused everywhere this much later; whoever sends a thousand messages has it read once.
const SECRET_KEPT: Duration = Duration::from_secs(10);

/// Secrets that are kept so.
const SECRETS_MAX: usize = 1024;

/// Why a listener cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ListenerError {
    /// No subscription has it.
    #[error("No push subscription for ingress listener '{0}'")]
    Unknown(String),
    /// Its document lacks something.
    #[error("Subscription '{path}' has no usable '{field}'")]
    Incomplete {
        /// The path of the document.
        path: String,
        field: &'static str,
    },
    /// The credential it names holds no secret.
    #[error("Credential '{0}' holds no secret text")]
    NoSecret(String),
    /// The credential it names cannot be used.
    #[error(transparent)]
    Credential(CredentialError),
    /// It could not be registered.
    #[error(transparent)]
    Subscription(SubscriptionError),
    /// The store did not answer.
    #[error("the store did not answer")]
    Store(#[source] StoreError),
}

/// Secrets by tenant and the name of their credential, and when they were read.
type Secrets = LruCache<(Tenant, String), (zeroize::Zeroizing<String>, Instant)>;

/// Listeners by name. Cheap to clone.
#[derive(Clone)]
pub struct Listeners {
    store: Arc<dyn Store>,
    subscriptions: Subscriptions,
    credentials: Credentials,
    read: Arc<Mutex<Documents>>,
    secrets: Arc<Mutex<Secrets>>,
}

impl Listeners {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        subscriptions: Subscriptions,
        credentials: Credentials,
    ) -> Self {
        let read = Arc::new(Mutex::new(Documents::new(READ_BYTES_MAX)));
        let most = std::num::NonZeroUsize::new(SECRETS_MAX).expect("more than none");
        let secrets = Arc::new(Mutex::new(LruCache::new(most)));
        Self { store, subscriptions, credentials, read, secrets }
    }

    /// What a gateway has to know of a listener. Its subscription is registered if it was not; its
    /// state is not looked at, because a gateway asks for that itself.
    pub async fn get(
        &self,
        tenant: &Tenant,
        name: &str,
    ) -> Result<(Listener, SubscriptionId), ListenerError> {
        let (mut listener, alias) = self.listener(tenant, name).await?;
        if let Some(alias) = alias {
            listener.verify.secret = Some(self.secret(tenant, &alias, "gateway").await?);
        }
        let row = self.subscriptions.register(tenant, &listener.path).await;
        let row = row.map_err(ListenerError::Subscription)?;
        Ok((listener, row.id))
    }

    /// What this server itself has to know to serve a listener. Nothing is registered: whoever asks
    /// has not shown yet who they are. A subscription that fetches its messages has no listener
    /// here.
    pub async fn open(&self, tenant: &Tenant, name: &str) -> Result<Listener, ListenerError> {
        let (mut listener, alias) = self.listener(tenant, name).await?;
        if !listener.is_push {
            return Err(ListenerError::Unknown(name.to_owned()));
        }
        if let Some(alias) = alias {
            listener.verify.secret = Some(self.kept_secret(tenant, alias).await?);
        }
        Ok(listener)
    }

    async fn listener(
        &self,
        tenant: &Tenant,
        name: &str,
    ) -> Result<(Listener, Option<String>), ListenerError> {
        let found = self.find(tenant, name).await.map_err(ListenerError::Store)?;
        let (path, read) = found.ok_or_else(|| ListenerError::Unknown(name.to_owned()))?;
        Document { path: &path, spec: &read.spec }.listener(name)
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

    fn kept(&self) -> std::sync::MutexGuard<'_, Secrets> {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The paths of other subscriptions whose newest version has this listener.
    pub(crate) async fn others(
        &self,
        tenant: &Tenant,
        path: &str,
        name: &str,
    ) -> Result<Vec<String>, StoreError> {
        let mut others = Vec::new();
        for head in self.store.newest_of(tenant, KIND).await? {
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

    /// The first subscription, in the order of paths, whose newest version has this listener.
    async fn find(
        &self,
        tenant: &Tenant,
        name: &str,
    ) -> Result<Option<(String, Arc<Read>)>, StoreError> {
        for head in self.store.newest_of(tenant, KIND).await? {
            let read = self.read(tenant, head.id).await?;
            if let Some(read) = read.filter(|read| read.listener == name) {
                return Ok(Some((head.path, read)));
            }
        }
        Ok(None)
    }

    /// What a document says. Its text is asked for only when it is not remembered.
    async fn read(&self, tenant: &Tenant, id: CatalogId) -> Result<Option<Arc<Read>>, StoreError> {
        if let Some(known) = self.lock().get(id) {
            return Ok(known);
        }
        let Some(entry) = self.store.entry(tenant, id).await? else { return Ok(None) };
        let bytes = entry.content.len();
        // One that somebody made large takes long to read; others are served meanwhile.
        let read = tokio::task::spawn_blocking(move || read(&entry.content)).await.ok().flatten();
        self.lock().put(id, read.clone(), bytes);
        Ok(read)
    }

    /// The secret text a credential holds.
    async fn secret(
        &self,
        tenant: &Tenant,
        alias: &str,
        who: &str,
    ) -> Result<String, ListenerError> {
        let asking = Asking {
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

    fn lock(&self) -> std::sync::MutexGuard<'_, Documents> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A text, or the first field that holds one. An empty one would let everybody in.
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
