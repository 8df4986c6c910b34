//! Who asks: a token of a service account, of the machine's own, one that is given, or none.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use noetl_fence::{Fence, Reach};
use noetl_model::{Map, Value};
use reqwest::{Client, Url};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::json;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::source::{SourceError, chain, text};

const SCOPE: &str = "https://www.googleapis.com/auth/pubsub";
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// Where a machine of Google's cloud asks for a token of its own.
const MACHINE: &str =
    "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token";

const TIMEOUT: Duration = Duration::from_secs(10);

/// How long before its end a token is not used any more.
const MARGIN: Duration = Duration::from_secs(60);

pub(super) struct Tokens {
    client: Client,
    who: Who,
    kept: Mutex<Option<(String, Instant)>>,
}

enum Who {
    Nobody,
    Given(String),
    Account(Box<Account>),
    Machine,
}

struct Account {
    email: String,
    key: RsaKeyPair,
    key_id: Option<String>,
    token_uri: String,
}

impl Tokens {
    /// Reads who asks. An endpoint of one's own, as an emulator is, is asked without a token unless there
    /// is a credential.
    pub(super) fn read(
        settings: &Map,
        fence: &Fence,
        client: impl Fn(&Fence) -> Result<Client, SourceError>,
        has_endpoint: bool,
    ) -> Result<Self, SourceError> {
        let email = text(settings, "client_email")?;
        let who = match (email, text(settings, "private_key")?, text(settings, "token")?) {
            (Some(email), Some(key), _) => Who::Account(Box::new(Account {
                email: email.to_owned(),
                key: read_key(key)?,
                key_id: text(settings, "private_key_id")?.map(str::to_owned),
                token_uri: text(settings, "token_uri")?.unwrap_or(TOKEN_URI).to_owned(),
            })),
            (_, _, Some(token)) => Who::Given(token.to_owned()),
            (Some(_), None, None) | (None, Some(_), None) => {
                let both = "a service account needs both `client_email` and `private_key`";
                return Err(SourceError::Settings(both.to_owned()));
            }
            (None, None, None) if has_endpoint => Who::Nobody,
            (None, None, None) => Who::Machine,
        };
        let wrong = |message: String| SourceError::Settings(format!("`token_uri`: {message}"));
        let client = match &who {
            Who::Account(account) => {
                let uri = account.token_uri.parse::<Url>();
                let uri = uri.map_err(|error| wrong(error.to_string()))?;
                fence.check(&uri).map_err(|error| wrong(error.to_string()))?;
                client(fence)?
            }
            // The one address where a machine asks who it is, which no document can change.
            Who::Machine => client(&Fence::new(Reach::Everything, "").unwrap_or_default())?,
            Who::Nobody | Who::Given(_) => client(fence)?,
        };
        Ok(Self { client, who, kept: Mutex::default() })
    }

    /// A token that is good for a while.
    pub(super) async fn get(&self) -> Result<Option<String>, SourceError> {
        match &self.who {
            Who::Nobody => return Ok(None),
            Who::Given(token) => return Ok(Some(token.clone())),
            Who::Account(_) | Who::Machine => {}
        }
        let mut kept = self.kept.lock().await;
        if let Some((token, until)) = &*kept
            && Instant::now() < *until
        {
            return Ok(Some(token.clone()));
        }
        let request = match &self.who {
            Who::Account(account) => {
                let assertion = assertion(account)?;
                let form = [("grant_type", GRANT), ("assertion", assertion.as_str())];
                self.client.post(&account.token_uri).form(&form)
            }
            _ => self.client.get(MACHINE).header("Metadata-Flavor", "Google"),
        };
        let away = |error: reqwest::Error| {
            SourceError::Away(chain("no token is given out", &error.without_url()))
        };
        let answer = request.timeout(TIMEOUT).send().await.map_err(away)?;
        let status = answer.status();
        let said: Value = answer.json().await.unwrap_or_default();
        if !status.is_success() {
            let reason = said.get("error_description").or_else(|| said.get("error"));
            let reason = reason.and_then(Value::as_str).unwrap_or("no reason given");
            let message = format!("no token is given out: {status}: {reason}");
            return Err(match status.is_client_error() {
                true => SourceError::Settings(message),
                false => SourceError::Away(message),
            });
        }
        let Some(token) = said.get("access_token").and_then(Value::as_str) else {
            return Err(SourceError::Away("who gives out tokens answers without one".to_owned()));
        };
        let secs = said.get("expires_in").and_then(Value::as_u64).unwrap_or(0);
        let good = Duration::from_secs(secs).saturating_sub(MARGIN);
        *kept = Some((token.to_owned(), Instant::now() + good));
        Ok(Some(token.to_owned()))
    }

    /// Does not use a token again.
    pub(super) async fn forget(&self) {
        *self.kept.lock().await = None;
    }
}

/// No error says what the key is.
fn read_key(pem: &str) -> Result<RsaKeyPair, SourceError> {
    // Keys that went through a shell often have their line ends spelled out.
    let pem = pem.replace("\\n", "\n");
    let wrong = || {
        let right = "`private_key` must be the PEM text of an RSA key, as in the key file";
        SourceError::Settings(right.to_owned())
    };
    let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| wrong())?;
    RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).map_err(|_| wrong())
}

/// A signed statement that a service account asks.
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
