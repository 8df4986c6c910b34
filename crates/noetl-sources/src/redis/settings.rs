//! Settings of a Redis source: server, stream, and consumer group.

use std::time::Duration;

use noetl_model::{Map, Value};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ConnectionInfo, IntoConnectionInfo as _};

use super::{TIMEOUT, wrong};
use crate::source::{SourceError, name_of, number, text};

/// Default idle time in seconds after which another consumer may claim an entry.
const CLAIM_DEFAULT_SECS: u64 = 30;

pub(super) struct RedisSettings {
    info: ConnectionInfo,
    pub(super) stream: String,
    pub(super) group: String,
    pub(super) consumer: String,
    /// ID after which a newly created group starts: `0` or `$`.
    pub(super) from: &'static str,
    pub(super) claim: Duration,
    /// Field that contains the body. `None` uses the whole entry.
    pub(super) body: Option<String>,
}

impl RedisSettings {
    pub(super) fn read(settings: &Map, path: &str) -> Result<Self, SourceError> {
        let wrong = |message: &str| SourceError::Settings(message.to_owned());
        let url = match (text(settings, "url")?, text(settings, "host")?) {
            (Some(url), _) => url.to_owned(),
            (None, Some(host)) => {
                let port = settings.get("port").map_or("6379".to_owned(), |port| match port {
                    Value::String(port) => port.clone(),
                    port => port.to_string(),
                });
                format!("redis://{host}:{port}")
            }
            (None, None) => {
                return Err(wrong(
                    "a redis source needs `url`, such as \"redis://host:6379\", or `auth`",
                ));
            }
        };
        // The driver's error may contain the password.
        let info = url.as_str().into_connection_info();
        let mut info = info
            .map_err(|_| wrong("`url` is not redis[s]://[user:password@]host[:port][/number]"))?;
        let mut who = info.redis_settings().clone();
        if let Some(user) = text(settings, "user")? {
            who = who.set_username(user);
        }
        if let Some(password) = text(settings, "password")? {
            who = who.set_password(password);
        }
        info = info.set_redis_settings(who);
        let stream = text(settings, "stream")?;
        let own = |key: &str| text(settings, key).map(|text| text.map(str::to_owned));
        let group = own("group")?.unwrap_or_else(|| name_of(path));
        let claim = number(settings, "claim_secs")?.unwrap_or(CLAIM_DEFAULT_SECS);
        Ok(Self {
            info,
            stream: stream.ok_or_else(|| wrong("a redis source needs `stream`"))?.to_owned(),
            consumer: own("consumer")?.unwrap_or_else(|| group.clone()),
            group,
            from: if text(settings, "from")? == Some("new") { "$" } else { "0" },
            claim: Duration::from_secs(claim),
            body: own("body")?,
        })
    }

    pub(super) async fn connect(&self) -> Result<MultiplexedConnection, SourceError> {
        // Fails only if another part of the program has installed a provider, which works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let failed = |error| wrong("the Redis server is not reached", &error);
        let client = Client::open(self.info.clone()).map_err(failed)?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(TIMEOUT))
            .set_response_timeout(Some(TIMEOUT));
        client.get_multiplexed_async_connection_with_config(&config).await.map_err(failed)
    }
}
