//! Cache of NATS clients, by settings.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::{Client, ConnectErrorKind, ConnectOptions};
use noetl_model::{Failure, FailureKind, Map, Value};
use tokio::time::Instant;

use crate::config::{self, type_name, wrong};

/// Time after which an unused client is closed.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// Maximum cached clients. If a worker's playbooks use more servers, some calls reconnect.
const KEPT_MAX: usize = 16;

/// Time limit for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone, PartialEq, Eq)]
pub(super) struct NatsSettings {
    urls: Vec<String>,
    user: Option<String>,
    password: Option<String>,
    token: Option<String>,
    creds: Option<String>,
    nkey: Option<String>,
    tls: bool,
}

impl NatsSettings {
    pub(super) fn read(settings: &Map) -> Result<Self, Failure> {
        let urls = match config::first(settings, &["url", "servers", "nats_url"]) {
            Some((_, Value::String(text))) => text
                .split(',')
                .map(str::trim)
                .filter(|url| !url.is_empty())
                .map(str::to_owned)
                .collect(),
            Some((key, Value::Array(items))) => {
                let urls = items.iter().map(|item| match item {
                    Value::String(url) => Ok(url.clone()),
                    other => {
                        Err(wrong(format!("`{key}` must list texts, not {}", type_name(other))))
                    }
                });
                urls.collect::<Result<Vec<_>, _>>()?
            }
            Some((key, other)) => {
                return Err(wrong(format!("`{key}` must be a text, not {}", type_name(other))));
            }
            None => Vec::new(),
        };
        if urls.is_empty() {
            return Err(wrong("a nats step needs `auth` or a `url` such as \"nats://host:4222\""));
        }
        let text = |key: &str| config::text(settings, key).map(|text| text.map(str::to_owned));
        let tls = match settings.get("tls") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(tls)) => *tls,
            Some(other) => {
                let actual = type_name(other);
                return Err(wrong(format!("`tls` must be true or false, not {actual}")));
            }
        };
        Ok(Self {
            urls,
            user: text("user")?,
            password: text("password")?,
            token: text("token")?,
            creds: text("creds")?,
            nkey: text("nkey")?,
            tls,
        })
    }

    async fn connect(&self) -> Result<Client, Failure> {
        // Fails only if another part of the program installed a provider before, which works as
        // well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut options = ConnectOptions::new()
            .name("noetl")
            .connection_timeout(CONNECT_TIMEOUT)
            .require_tls(self.tls)
            // The timeout of the call applies instead.
            .request_timeout(None);
        if let (Some(user), Some(password)) = (&self.user, &self.password) {
            options = options.user_and_password(user.clone(), password.clone());
        }
        if let Some(token) = &self.token {
            options = options.token(token.clone());
        }
        if let Some(nkey) = &self.nkey {
            options = options.nkey(nkey.clone());
        }
        if let Some(creds) = &self.creds {
            let read = options.credentials(creds);
            // The driver's error may quote the secret text.
            options =
                read.map_err(|_| wrong("`creds` is not the text of a NATS credentials file"))?;
        }
        options.connect(self.urls.clone()).await.map_err(|error| {
            let kind = match error.kind() {
                ConnectErrorKind::ServerParse => FailureKind::Config,
                ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                    FailureKind::Auth
                }
                _ => FailureKind::Connection,
            };
            Failure::new(
                kind,
                format!("the NATS server cannot be used: {}", super::message::cause(&error)),
            )
        })
    }
}

/// Cached clients. A clone only increments a reference count.
#[derive(Clone, Default)]
pub(super) struct Clients(Arc<Mutex<Vec<CachedClient>>>);

struct CachedClient {
    settings: NatsSettings,
    client: Client,
    used: Instant,
}

impl std::fmt::Debug for Clients {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Clients({})", self.lock().len())
    }
}

impl Clients {
    fn lock(&self) -> MutexGuard<'_, Vec<CachedClient>> {
        // Every change is a single operation of `Vec`, so the list is consistent even if the lock
        // is poisoned.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a connected client for these settings.
    pub(super) async fn get(&self, settings: &NatsSettings) -> Result<Client, Failure> {
        let now = Instant::now();
        if let Some(cached) = self.lock().iter_mut().find(|cached| cached.settings == *settings) {
            cached.used = now;
            return Ok(cached.client.clone());
        }
        let client = settings.connect().await?;
        let mut clients = self.lock();
        if clients.len() >= KEPT_MAX {
            clients.remove(0);
        }
        clients.push(CachedClient {
            settings: settings.clone(),
            client: client.clone(),
            used: now,
        });
        drop(clients);
        self.expire_later();
        Ok(client)
    }

    /// Removes a client, so that the next call with these settings reconnects.
    pub(super) fn forget(&self, settings: &NatsSettings) {
        self.lock().retain(|cached| cached.settings != *settings);
    }

    /// Spawns a task that closes unused clients, until none is left.
    fn expire_later(&self) {
        let clients = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(IDLE_MAX).await;
                let Some(clients) = clients.upgrade().map(Clients) else { return };
                let mut cached = clients.lock();
                cached.retain(|client| client.used.elapsed() < IDLE_MAX);
                if cached.is_empty() {
                    return;
                }
            }
        });
    }
}
