//! SASL authentication: a user with a password, or an OAuth bearer token.

use std::sync::Arc;

use noetl_egress::EgressPolicy;
use noetl_model::Map;
use reqwest::Client;

use super::scram::Hash;
use super::wrong;
use crate::source::{SourceError, text};
use crate::token::{self, CachedToken};

#[derive(Clone)]
pub(super) enum SaslAuth {
    Plain(SaslUser),
    Scram(Hash, SaslUser),
    Bearer(Arc<Bearer>),
}

#[derive(Clone)]
pub(super) struct SaslUser {
    pub(super) name: String,
    pub(super) password: String,
}

impl SaslAuth {
    pub(super) fn read(settings: &Map, egress: &EgressPolicy) -> Result<Option<Self>, SourceError> {
        let user = || -> Result<SaslUser, SourceError> {
            let Some(name) = text(settings, "user")? else {
                let mechanism = text(settings, "mechanism")?.unwrap_or_default();
                return Err(wrong(format!("`mechanism: {mechanism}` needs `user`")));
            };
            let password = text(settings, "password")?.unwrap_or_default().to_owned();
            Ok(SaslUser { name: name.to_owned(), password })
        };
        Ok(Some(match text(settings, "mechanism")? {
            None if text(settings, "user")?.is_none() => return Ok(None),
            None | Some("PLAIN") => Self::Plain(user()?),
            Some("SCRAM-SHA-256") => Self::Scram(Hash::Sha256, user()?),
            Some("SCRAM-SHA-512") => Self::Scram(Hash::Sha512, user()?),
            Some("OAUTHBEARER") => Self::Bearer(Arc::new(Bearer::read(settings, egress)?)),
            Some(other) => {
                let right = "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER";
                return Err(wrong(format!("`mechanism` must be {right}, not '{other}'")));
            }
        }))
    }

    /// Returns the name of the SASL mechanism.
    pub(super) fn mechanism(&self) -> &'static str {
        match self {
            Self::Plain(_) => "PLAIN",
            Self::Scram(Hash::Sha256, _) => "SCRAM-SHA-256",
            Self::Scram(Hash::Sha512, _) => "SCRAM-SHA-512",
            Self::Bearer(_) => "OAUTHBEARER",
        }
    }
}

pub(super) enum Bearer {
    Given(String),
    Asked(Box<TokenEndpoint>),
}

pub(super) struct TokenEndpoint {
    client: Client,
    token_url: String,
    form: Vec<(&'static str, String)>,
    cache: CachedToken,
}

impl Bearer {
    fn read(settings: &Map, egress: &EgressPolicy) -> Result<Self, SourceError> {
        if let Some(token) = text(settings, "token")? {
            return Ok(Self::Given(token.to_owned()));
        }
        let needed = |key: &str| -> Result<String, SourceError> {
            let text_value = text(settings, key)?.map(str::to_owned);
            text_value.ok_or_else(|| {
                wrong(format!("`mechanism: OAUTHBEARER` needs `{key}`, or a `token` as it is"))
            })
        };
        let token_url = needed("token_url")?;
        token::check("token_url", &token_url, egress)?;
        let mut form = vec![
            ("grant_type", "client_credentials".to_owned()),
            ("client_id", needed("client_id")?),
            ("client_secret", needed("client_secret")?),
        ];
        for key in ["scope", "audience"] {
            form.extend(text(settings, key)?.map(|value| (key, value.to_owned())));
        }
        let client = token::client(egress)?;
        Ok(Self::Asked(Box::new(TokenEndpoint {
            client,
            token_url,
            form,
            cache: CachedToken::default(),
        })))
    }

    pub(super) async fn get(&self) -> Result<String, SourceError> {
        let token = match self {
            Self::Given(token) => token.clone(),
            Self::Asked(asked) => {
                let request = || Ok(asked.client.post(&asked.token_url).form(&asked.form));
                asked.cache.get(request).await?
            }
        };
        // The SASL message has separators that a valid token cannot contain.
        match token.chars().all(|sign| sign.is_ascii_graphic()) {
            true => Ok(token),
            false => Err(wrong("the token contains invalid characters")),
        }
    }

    /// Discards a token that a broker rejected.
    pub(super) async fn forget(&self) {
        if let Self::Asked(asked) = self {
            asked.cache.forget().await;
        }
    }
}
