//! Connection settings of a NATS source.

use async_nats::{Client, ConnectErrorKind, ConnectOptions};
use noetl_model::{Map, Value};

use super::{TIMEOUT, away};
use crate::source::{SourceError, text};

/// Messages of a subject buffered in this process. Further messages are dropped.
const CAPACITY: usize = 4096;

/// Server addresses and credentials of a NATS source.
pub(super) struct NatsSettings {
    urls: Vec<String>,
    user: Option<String>,
    password: Option<String>,
    token: Option<String>,
    creds: Option<String>,
    nkey: Option<String>,
}

impl NatsSettings {
    pub(super) fn read(settings: &Map) -> Result<Self, SourceError> {
        let wrong = |message: &str| SourceError::Settings(message.to_owned());
        let urls: Vec<String> = match settings.get("url").or_else(|| settings.get("servers")) {
            Some(Value::String(text)) => text.split(',').map(|url| url.trim().to_owned()).collect(),
            Some(Value::Array(urls)) => {
                let texts = urls.iter().map(|url| url.as_str().map(|url| url.trim().to_owned()));
                let texts: Option<Vec<_>> = texts.collect();
                texts.ok_or_else(|| wrong("`url` must list texts"))?
            }
            None | Some(Value::Null) => Vec::new(),
            Some(_) => return Err(wrong("`url` must be a text such as \"nats://host:4222\"")),
        };
        if urls.is_empty() || urls.iter().any(String::is_empty) {
            let message = "a nats source needs `url`, such as \"nats://host:4222\", or `auth`";
            return Err(wrong(message));
        }
        let own = |key: &str| text(settings, key).map(|text| text.map(str::to_owned));
        Ok(Self {
            urls,
            user: own("user")?,
            password: own("password")?,
            token: own("token")?,
            creds: own("creds")?,
            nkey: own("nkey")?,
        })
    }

    /// Connects to the server. The client reconnects by itself while the source is in use.
    pub(super) async fn connect(&self) -> Result<Client, SourceError> {
        // Fails only if another part of the program has installed a provider, which works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut options = ConnectOptions::new()
            .name("noetl")
            .connection_timeout(TIMEOUT)
            .ping_interval(TIMEOUT)
            .subscription_capacity(CAPACITY)
            .request_timeout(Some(TIMEOUT));
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
            // The driver's error may contain the credentials.
            options = options.credentials(creds).map_err(|_| {
                let message = "`creds` is not the text of a NATS credentials file";
                SourceError::Settings(message.to_owned())
            })?;
        }
        options.connect(self.urls.clone()).await.map_err(|error| match error.kind() {
            ConnectErrorKind::ServerParse => {
                let message = "`url` is not nats://[user:password@]host[:port]";
                SourceError::Settings(message.to_owned())
            }
            _ => away("the NATS server is not reached", &error),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn urls(settings: Value) -> Result<Vec<String>, SourceError> {
        let Value::Object(settings) = settings else { panic!("a map") };
        NatsSettings::read(&settings).map(|settings| settings.urls)
    }

    #[test]
    fn a_url_is_a_string_or_a_list() {
        let two = Ok(vec!["nats://a".to_owned(), "nats://b".to_owned()]);
        assert_eq!(urls(json!({"url": "nats://a, nats://b"})), two);
        assert_eq!(urls(json!({"servers": ["nats://a", " nats://b"]})), two);
        for none in [json!({}), json!({"url": ""}), json!({"url": 7}), json!({"url": ["a", 7]})] {
            assert!(matches!(urls(none.clone()), Err(SourceError::Settings(_))), "{none}");
        }
    }
}
