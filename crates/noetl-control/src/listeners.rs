//! Which subscription a gateway's listener is, and what the gateway has to know of it.
//!
//! Documents are looked at as they are: one that cannot be read is passed over, one that lacks
//! something is refused when it is asked for, because both may have been in the catalog before there
//! was a check. A document never changes, so each is read once.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use lru::LruCache;
use noetl_model::{CatalogId, SubscriptionId, Tenant, Value};
use noetl_playbook::subscription::{PAYLOAD_FROM, VerifyKind, listener};
use noetl_playbook::subscription_spec;
use noetl_store::{Store, StoreError};

use crate::audit::Asking;
use crate::credentials::{CredentialError, Credentials};
use crate::subscriptions::{KIND, SubscriptionError, Subscriptions};

/// Documents whose reading is remembered; each is a few kilobytes at most times.
const READ_MAX: usize = 4096;

/// Bytes of documents whose reading is remembered.
const READ_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Fields of a credential that may hold its secret, the first that does.
const SECRET_FIELDS: [&str; 5] = ["secret", "token", "value", "key", "password"];

/// What a gateway has to know of a listener.
#[derive(Debug, Clone, PartialEq)]
pub struct Listener {
    /// Its name.
    pub name: String,
    /// The path of its document.
    pub path: String,
    /// Where its messages come from.
    pub source: String,
    /// Its subscription.
    pub subscription: SubscriptionId,
    /// How senders are known.
    pub verify: ListenerVerify,
    /// The playbook a message starts.
    pub playbook: String,
    /// Which part of a message is laid out in the payload.
    pub payload_from: String,
    /// Which pool runs it.
    pub execution_pool: Option<String>,
    /// What headers may decide, as the document has it.
    pub headers: Option<Value>,
}

/// How senders are known, with the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct ListenerVerify {
    /// By what.
    pub kind: VerifyKind,
    /// The header of the signature, in lower case.
    pub header: Option<String>,
    /// The secret itself.
    pub secret: Option<String>,
    /// Whom the token is for.
    pub audience: Option<String>,
    /// Who signs in.
    pub service_account: Option<String>,
}

impl std::fmt::Debug for ListenerVerify {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ListenerVerify").field("kind", &self.kind).finish_non_exhaustive()
    }
}

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
        /// What it lacks.
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

/// What is remembered of a document: its listener and its `spec`.
#[derive(Debug)]
struct Read {
    listener: String,
    spec: Value,
}

/// What is remembered, least recently used out first, bounded by number and by bytes of text.
struct Documents {
    read: LruCache<CatalogId, (Option<Arc<Read>>, usize)>,
    bytes: usize,
    bytes_max: usize,
}

impl Documents {
    fn new(bytes_max: usize) -> Self {
        let most = NonZeroUsize::new(READ_MAX).expect("more than none");
        Self { read: LruCache::new(most), bytes: 0, bytes_max }
    }

    fn get(&mut self, id: CatalogId) -> Option<Option<Arc<Read>>> {
        self.read.get(&id).map(|(read, _)| read.clone())
    }

    /// One that has no listener takes no room, however large its text is.
    fn put(&mut self, id: CatalogId, read: Option<Arc<Read>>, bytes: usize) {
        let bytes = if read.is_some() { bytes } else { 0 };
        self.bytes += bytes;
        if let Some((_, (_, out))) = self.read.push(id, (read, bytes)) {
            self.bytes -= out;
        }
        while self.bytes > self.bytes_max {
            let Some((_, (_, out))) = self.read.pop_lru() else { break };
            self.bytes -= out;
        }
    }
}

/// Listeners by name. Cheap to clone.
#[derive(Clone)]
pub struct Listeners {
    store: Arc<dyn Store>,
    subscriptions: Subscriptions,
    credentials: Credentials,
    read: Arc<Mutex<Documents>>,
}

impl Listeners {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        subscriptions: Subscriptions,
        credentials: Credentials,
    ) -> Self {
        let read = Arc::new(Mutex::new(Documents::new(READ_BYTES_MAX)));
        Self { store, subscriptions, credentials, read }
    }

    /// What a gateway has to know of a listener. Its subscription is registered if it was not; its
    /// state is not looked at, because a gateway asks for that itself.
    pub async fn get(&self, tenant: &Tenant, name: &str) -> Result<Listener, ListenerError> {
        let found = self.find(tenant, name).await.map_err(ListenerError::Store)?;
        let (path, read) = found.ok_or_else(|| ListenerError::Unknown(name.to_owned()))?;
        let document = Document { path: &path, spec: &read.spec };
        let (kind, header) = document.verify()?;
        let dispatch = document.spec.get("dispatch").unwrap_or(&Value::Null);
        let playbook = document.needed(dispatch, "playbook", "dispatch.playbook")?;
        let verify = document.ingress().get("verify").unwrap_or(&Value::Null);
        let (audience, service_account) =
            (text(verify, "audience"), text(verify, "service_account"));
        let secret = match kind {
            VerifyKind::HmacSha256 | VerifyKind::Bearer => {
                let alias = document.needed(verify, "secret", "ingress.verify.secret")?;
                Some(self.secret(tenant, &alias).await?)
            }
            VerifyKind::PubsubOidc => {
                document.needed(verify, "audience", "ingress.verify.audience")?;
                document.needed(verify, "service_account", "ingress.verify.service_account")?;
                None
            }
        };
        let row = self.subscriptions.register(tenant, &path).await;
        let row = row.map_err(ListenerError::Subscription)?;
        Ok(Listener {
            name: name.to_owned(),
            source: text(document.spec, "source").unwrap_or_else(|| "webhook".to_owned()),
            subscription: row.id,
            verify: ListenerVerify { kind, header, secret, audience, service_account },
            playbook,
            payload_from: text(dispatch, "payload_from").unwrap_or_else(|| PAYLOAD_FROM.into()),
            execution_pool: text(dispatch, "execution_pool"),
            headers: document.spec.get("headers").filter(|headers| !headers.is_null()).cloned(),
            path,
        })
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
    async fn secret(&self, tenant: &Tenant, alias: &str) -> Result<String, ListenerError> {
        let asking = Asking {
            who: "gateway".to_owned(),
            operation: "ingress",
            execution: None,
            parent: None,
        };
        let revealed = self.credentials.reveal(tenant, alias, &asking).await;
        let (_, data) = revealed.map_err(ListenerError::Credential)?;
        secret_in(&data).ok_or_else(|| ListenerError::NoSecret(alias.to_owned()))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Documents> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(content: &str) -> Option<Arc<Read>> {
    let spec = subscription_spec(content)?;
    let path = spec.get("ingress").and_then(|ingress| text(ingress, "gateway_path"))?;
    let listener = listener(&path)?.to_owned();
    Some(Arc::new(Read { listener, spec }))
}

/// A text, or the first field that holds one. An empty one would let everybody in.
fn secret_in(data: &Value) -> Option<String> {
    let fields = SECRET_FIELDS.iter().filter_map(|field| data.get(field));
    let mut texts = std::iter::once(data).chain(fields).filter_map(Value::as_str);
    texts.find(|text| !text.is_empty()).map(str::to_owned)
}

/// A text that is not empty.
fn text(of: &Value, field: &str) -> Option<String> {
    let text = of.get(field).and_then(Value::as_str).map(str::trim);
    text.filter(|text| !text.is_empty()).map(str::to_owned)
}

struct Document<'a> {
    path: &'a str,
    spec: &'a Value,
}

impl Document<'_> {
    fn ingress(&self) -> &Value {
        self.spec.get("ingress").unwrap_or(&Value::Null)
    }

    /// How senders are known, and the header of their signature.
    fn verify(&self) -> Result<(VerifyKind, Option<String>), ListenerError> {
        let verify = self.ingress().get("verify").unwrap_or(&Value::Null);
        let kind = self.needed(verify, "type", "ingress.verify.type")?;
        let kind = VerifyKind::from_text(&kind);
        let kind = kind.ok_or_else(|| self.incomplete("ingress.verify.type"))?;
        let header = text(verify, "header").map(|header| header.to_lowercase());
        if kind == VerifyKind::HmacSha256 && header.is_none() {
            return Err(self.incomplete("ingress.verify.header"));
        }
        Ok((kind, header))
    }

    fn needed(&self, of: &Value, field: &str, name: &'static str) -> Result<String, ListenerError> {
        text(of, field).ok_or_else(|| self.incomplete(name))
    }

    fn incomplete(&self, field: &'static str) -> ListenerError {
        ListenerError::Incomplete { path: self.path.to_owned(), field }
    }
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

    #[test]
    fn what_is_remembered_is_bounded_by_bytes() {
        let mut documents = Documents::new(100);
        let document = read("spec: {ingress: {gateway_path: /in/orders/}}");
        let ids = [1, 2, 3].map(CatalogId::new);
        documents.put(ids[0], document.clone(), 60);
        documents.put(ids[1], None, 1000);
        assert!(documents.get(ids[0]).is_some(), "one without a listener puts nothing out");
        documents.put(ids[0], document.clone(), 60);
        assert_eq!(documents.bytes, 60, "the same again counts once");
        documents.put(ids[2], document.clone(), 50);
        assert!(documents.get(ids[0]).is_none() && documents.get(ids[2]).is_some());
        documents.put(ids[0], document, 101);
        assert_eq!((documents.bytes, documents.read.len()), (0, 0));
    }

    #[test]
    fn a_document_that_cannot_be_read_has_no_listener() {
        let spec = "spec: {ingress: {gateway_path: /in/orders/}}";
        assert_eq!(read(spec).map(|read| read.listener.clone()).as_deref(), Some("orders"));
        for text in ["", "spec: [", "spec: {ingress: {gateway_path: 7}}", "spec: {mode: pull}"] {
            assert!(read(text).is_none(), "{text}");
        }
    }
}
