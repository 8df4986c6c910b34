//! Authentication: a service account, the machine's metadata server, a given token, or none.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use noetl_egress::{DefaultAccess, EgressPolicy};
use noetl_model::{Map, Value};
use reqwest::Client;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::json;

use crate::source::{SourceError, text};
use crate::token::{self, CachedToken};

const SCOPE: &str = "https://www.googleapis.com/auth/pubsub";
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// Metadata server that issues tokens to machines in Google Cloud.
const MACHINE: &str =
    "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token";

pub(super) struct TokenProvider {
    client: Client,
    method: AuthMethod,
    cache: CachedToken,
}

enum AuthMethod {
    Anonymous,
    Token(String),
    Account(Box<Account>),
    Machine,
}

struct Account {
    email: String,
    key: RsaKeyPair,
    key_id: Option<String>,
    token_uri: String,
}

impl TokenProvider {
    /// Reads the authentication settings. A custom endpoint, such as an emulator, gets no token
    /// unless there is a credential.
    pub(super) fn read(
        settings: &Map,
        egress: &EgressPolicy,
        has_endpoint: bool,
    ) -> Result<Self, SourceError> {
        let email = text(settings, "client_email")?;
        let method = match (email, text(settings, "private_key")?, text(settings, "token")?) {
            (Some(email), Some(key), _) => AuthMethod::Account(Box::new(Account {
                email: email.to_owned(),
                key: read_key(key)?,
                key_id: text(settings, "private_key_id")?.map(str::to_owned),
                token_uri: text(settings, "token_uri")?.unwrap_or(TOKEN_URI).to_owned(),
            })),
            (_, _, Some(token)) => AuthMethod::Token(token.to_owned()),
            (Some(_), None, None) | (None, Some(_), None) => {
                let both = "a service account needs both `client_email` and `private_key`";
                return Err(SourceError::Settings(both.to_owned()));
            }
            (None, None, None) if has_endpoint => AuthMethod::Anonymous,
            (None, None, None) => AuthMethod::Machine,
        };
        let client = match &method {
            AuthMethod::Account(account) => {
                token::check("token_uri", &account.token_uri, egress)?;
                token::client(egress)?
            }
            // The metadata server has a fixed address that no document can change.
            AuthMethod::Machine => token::client(
                &EgressPolicy::new(DefaultAccess::Everything, "").unwrap_or_default(),
            )?,
            AuthMethod::Anonymous | AuthMethod::Token(_) => token::client(egress)?,
        };
        Ok(Self { client, method, cache: CachedToken::default() })
    }

    /// Returns a valid token, or `None` if requests are not authenticated.
    pub(super) async fn get(&self) -> Result<Option<String>, SourceError> {
        let token = match &self.method {
            AuthMethod::Anonymous => return Ok(None),
            AuthMethod::Token(token) => token.clone(),
            AuthMethod::Account(account) => {
                let request = || {
                    let form = [("grant_type", GRANT), ("assertion", &assertion(account)?)];
                    Ok(self.client.post(&account.token_uri).form(&form))
                };
                self.cache.get(request).await?
            }
            AuthMethod::Machine => {
                let request = || Ok(self.client.get(MACHINE).header("Metadata-Flavor", "Google"));
                self.cache.get(request).await?
            }
        };
        Ok(Some(token))
    }

    pub(super) async fn forget(&self) {
        self.cache.forget().await;
    }
}

/// Parses an RSA key. Errors never contain the key.
fn read_key(pem: &str) -> Result<RsaKeyPair, SourceError> {
    // Keys passed through a shell often have escaped line ends.
    let pem = pem.replace("\\n", "\n");
    let wrong = || {
        let right = "`private_key` must be the PEM text of an RSA key, as in the key file";
        SourceError::Settings(right.to_owned())
    };
    let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| wrong())?;
    RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).map_err(|_| wrong())
}

/// Returns a signed JWT assertion for a service account.
fn assertion(account: &Account) -> Result<String, SourceError> {
    #[expect(clippy::disallowed_methods, reason = "the service compares it with its own clock")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let header = json!({"alg": "RS256", "typ": "JWT", "kid": account.key_id});
    let claims = json!({
        "iss": account.email, "scope": SCOPE, "aud": account.token_uri, "iat": now, "exp": now + 3600,
    });
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(header), part(claims));
    let mut signature = vec![0; account.key.public().modulus_len()];
    let random = SystemRandom::new();
    let done = account.key.sign(&RSA_PKCS1_SHA256, &random, signed.as_bytes(), &mut signature);
    done.map_err(|_| SourceError::Settings("`private_key` cannot sign".to_owned()))?;
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}
