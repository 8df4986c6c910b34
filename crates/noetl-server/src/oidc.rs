//! Callers that an OpenID Connect provider vouches for.
//!
//! The provider's keys are found from its discovery document and kept for a while; a token signed
//! with a key that is not among them has them read again, but not at every such token. Only
//! signatures with a public key are taken: a provider's secret is nobody else's.

mod sign_in;
mod signatures;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use noetl_control::Role;
use noetl_fence::{Fence, Reach};
use noetl_model::{Tenant, Value};
use noetl_playbook::subscription::PUSH_ISSUER;
use serde::Deserialize;

use self::sign_in::Endpoints;
pub(crate) use self::sign_in::Proof;
use crate::http::caller::Caller;
use crate::http::roles::Roles;

/// How long keys are believed without asking again.
const KEPT: Duration = Duration::from_secs(600);
/// How soon keys are asked for again because of a key that is not among them.
const AGAIN: Duration = Duration::from_secs(10);
/// How long keys may be used while the provider does not answer.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);
/// How long the provider may take.
const ANSWER: Duration = Duration::from_secs(10);
/// By how much clocks may differ.
const LEEWAY: u64 = 60;

/// How much a provider may say: its keys and where things are are a few kilobytes.
const ANSWER_MAX: usize = 1 << 20;

/// How often a provider may send one on.
const REDIRECTS_MAX: usize = 3;

/// Providers of listeners that are remembered.
const ISSUERS_MAX: usize = 256;

const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// Which provider vouches for whom.
#[derive(Debug, Clone)]
pub struct OidcSettings {
    /// The provider, as its tokens name it.
    pub issuer: String,
    /// Whom its tokens have to be made for.
    pub audience: String,
    /// The claim that lists roles; a dot goes into an object.
    pub roles_claim: String,
    /// The claim that names the tenant. A token without it is refused where the claim is given here.
    /// Default: `tenant`, and whoever has none is of the default tenant.
    pub tenant_claim: Option<String>,
    /// As whom the web page signs people in there. Default: not at all, so that they bring a token.
    pub client_id: Option<String>,
}

/// Why a token's holder is not known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OidcError {
    /// It is not a token of the provider for us.
    #[error("{0}")]
    Refused(String),
    /// The provider's keys cannot be had.
    #[error("{0}")]
    Unavailable(String),
}

/// An identity provider. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Oidc(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: OidcSettings,
    http: reqwest::Client,
    fence: Fence,
    /// Held for an assignment at a time, never while the provider is asked.
    keys: Mutex<Keys>,
    /// Held by whoever asks the provider.
    asking: tokio::sync::Mutex<()>,
    /// Where people sign in, and when that was read.
    endpoints: Mutex<Option<(Instant, Endpoints)>>,
}

#[derive(Debug, Clone, Default)]
struct Keys {
    set: Option<Arc<JwkSet>>,
    read: Option<Instant>,
    /// When they were asked for last, whether or not there was an answer.
    asked: Option<Instant>,
    /// Why there was none.
    failure: Option<String>,
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
    authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
}

impl Oidc {
    /// Takes tokens of this provider. It is asked when the first token comes.
    pub fn new(settings: OidcSettings) -> io::Result<Self> {
        // Its address is the operator's own word.
        let anywhere = Fence::new(Reach::Everything, "").map_err(io::Error::other)?;
        Self::behind(settings, anywhere)
    }

    fn behind(settings: OidcSettings, fence: Fence) -> io::Result<Self> {
        signatures::install();
        // Another part of the program may have chosen one before, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().timeout(ANSWER);
        let http = fence.around(http.redirect(fence.redirects(REDIRECTS_MAX))).build();
        let http = http.map_err(io::Error::other)?;
        Ok(Self(Arc::new(Inner {
            settings,
            http,
            fence,
            keys: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
            endpoints: Mutex::default(),
        })))
    }

    pub(crate) async fn caller(&self, token: &str) -> Result<Caller, OidcError> {
        let settings = &self.0.settings;
        let claims = self.verified(token, Some(&settings.audience)).await?;
        caller_of(settings, &claims)
    }

    /// What a token of the provider says, whomever it is for.
    pub(crate) async fn claims(&self, token: &str) -> Result<Value, OidcError> {
        self.verified(token, None).await
    }

    async fn verified(&self, token: &str, audience: Option<&str>) -> Result<Value, OidcError> {
        let header = decode_header(token).map_err(|_| refused("it is no JSON web token"))?;
        if !ALGORITHMS.contains(&header.alg) {
            return Err(refused(&format!("its algorithm {:?} is not taken", header.alg)));
        }
        let key = self.key(header.kid.as_deref(), header.alg).await?;
        let key = DecodingKey::from_jwk(&key).map_err(|_| refused("its key cannot be used"))?;
        let issuer = self.0.settings.issuer.as_str();
        let mut rules = Validation::new(header.alg);
        match issuer {
            // Its tokens name it in either way.
            PUSH_ISSUER => rules.set_issuer(&[issuer, "accounts.google.com"]),
            _ => rules.set_issuer(&[issuer]),
        }
        match audience {
            Some(audience) => {
                rules.set_audience(&[audience]);
                rules.set_required_spec_claims(&["exp", "iss", "aud"]);
            }
            None => {
                rules.validate_aud = false;
                rules.set_required_spec_claims(&["exp", "iss"]);
            }
        }
        rules.validate_nbf = true;
        rules.leeway = LEEWAY;
        let claims = decode::<Value>(token, &key, &rules);
        Ok(claims.map_err(|error| refused(&error.to_string()))?.claims)
    }

    /// The key a token names; without a name, the only one that fits. Who has a key that is known
    /// never waits for the provider.
    async fn key(&self, id: Option<&str>, algorithm: Algorithm) -> Result<Jwk, OidcError> {
        let known = self.known();
        let key = known.set.as_ref().and_then(|set| found(set, id, algorithm));
        let age = known.read.map(|read| read.elapsed());
        let may_ask = known.asked.is_none_or(|asked| asked.elapsed() > AGAIN);
        match (key, age) {
            (Some(key), Some(age)) if age < STALE => {
                if age > KEPT && may_ask {
                    let provider = self.clone();
                    tokio::spawn(async move { provider.refresh().await });
                }
                return Ok(key);
            }
            _ if may_ask => self.refresh().await,
            _ => {}
        }
        let known = self.known();
        let usable = known.read.is_some_and(|read| read.elapsed() < STALE);
        let Some(set) = known.set.filter(|_| usable) else {
            let why = known.failure.unwrap_or_else(|| "its keys are too old".to_owned());
            return Err(OidcError::Unavailable(why));
        };
        found(&set, id, algorithm).ok_or_else(|| refused("its key is not one of the provider's"))
    }

    /// Asks for the keys, unless somebody has just done so.
    async fn refresh(&self) {
        let _turn = self.0.asking.lock().await;
        if self.known().asked.is_some_and(|asked| asked.elapsed() <= AGAIN) {
            return;
        }
        let fetched = self.fetch().await;
        let mut keys = self.0.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        keys.asked = Some(now);
        match fetched {
            Ok(set) => {
                keys.set = Some(Arc::new(set));
                keys.read = Some(now);
                keys.failure = None;
            }
            Err(why) => keys.failure = Some(why),
        }
    }

    fn known(&self) -> Keys {
        self.0.keys.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn fetch(&self) -> Result<JwkSet, String> {
        self.read(&self.discovery().await?.jwks_uri).await
    }

    async fn discovery(&self) -> Result<Discovery, String> {
        let issuer = self.0.settings.issuer.trim_end_matches('/');
        let address = format!("{issuer}/.well-known/openid-configuration");
        let discovery: Discovery = self.read(&address).await?;
        if discovery.issuer.trim_end_matches('/') != issuer {
            return Err(format!("{address} speaks of {}", discovery.issuer));
        }
        Ok(discovery)
    }

    async fn read<T: serde::de::DeserializeOwned>(&self, address: &str) -> Result<T, String> {
        let failed = |error: reqwest::Error| format!("{address}: {error}");
        let url = address.parse().map_err(|error| format!("{address}: {error}"))?;
        self.0.fence.check(&url).map_err(|error| error.to_string())?;
        let asked = self.0.http.get(url).send().await.map_err(failed)?;
        let mut asked = asked.error_for_status().map_err(failed)?;
        let mut said = Vec::new();
        // A few packed bytes can be a great many once they are unpacked.
        while let Some(part) = asked.chunk().await.map_err(failed)? {
            said.extend_from_slice(&part);
            if said.len() > ANSWER_MAX {
                return Err(format!("{address} says more than {ANSWER_MAX} bytes"));
            }
        }
        serde_json::from_slice(&said).map_err(|error| format!("{address}: {error}"))
    }
}

/// Providers that listeners name, by their address. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Issuers {
    known: Arc<Mutex<HashMap<String, Oidc>>>,
    fence: Fence,
}

impl Issuers {
    /// Providers that this fence lets through: whoever writes a listener names one.
    pub(crate) fn behind(fence: Fence) -> Self {
        Self { known: Arc::default(), fence }
    }

    /// The provider at this address, with the keys that were read of it.
    pub(crate) fn of(&self, issuer: &str) -> io::Result<Oidc> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(provider) = known.get(issuer) {
            return Ok(provider.clone());
        }
        let settings = OidcSettings {
            issuer: issuer.to_owned(),
            audience: String::new(),
            roles_claim: String::new(),
            tenant_claim: None,
            client_id: None,
        };
        let provider = Oidc::behind(settings, self.fence.clone())?;
        // Documents name them, so there are few; whoever makes many has them read again.
        if known.len() >= ISSUERS_MAX {
            known.clear();
        }
        known.insert(issuer.to_owned(), provider.clone());
        Ok(provider)
    }
}

fn found(set: &JwkSet, id: Option<&str>, algorithm: Algorithm) -> Option<Jwk> {
    match id {
        Some(id) => set.find(id).cloned(),
        None => {
            let mut fitting = set.keys.iter().filter(|key| {
                key.common.key_algorithm.is_none_or(|named| {
                    named.to_string().parse().is_ok_and(|named: Algorithm| named == algorithm)
                })
            });
            fitting.next().filter(|_| fitting.next().is_none()).cloned()
        }
    }
}

fn caller_of(settings: &OidcSettings, claims: &Value) -> Result<Caller, OidcError> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    let name = text("preferred_username").or(text("email")).or(text("sub")).unwrap_or("somebody");
    let named = at(claims, &settings.roles_claim);
    let names: Vec<&str> = match named {
        Some(Value::String(list)) => list.split([' ', ',']).collect(),
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let roles = names.into_iter().filter_map(|name| name.parse::<Role>().ok());
    let roles = roles.map(Roles::of).fold(Roles::NONE, Roles::and);
    let actor: Arc<str> = format!("oidc:{}", text("sub").unwrap_or_default()).into();
    Ok(Caller {
        name: name.into(),
        tenant: tenant_of(settings, claims)?,
        roles,
        acting: roles,
        grantee: actor.clone(),
        actor,
        pool: None,
    })
}

/// Whose rows the holder of a token sees. The default tenant looks after what all of them share, so
/// nobody becomes one of it by a claim that was forgotten or cannot be read.
fn tenant_of(settings: &OidcSettings, claims: &Value) -> Result<Tenant, OidcError> {
    let name = settings.tenant_claim.as_deref().unwrap_or("tenant");
    match at(claims, name) {
        Some(Value::String(tenant)) if !tenant.trim().is_empty() && !tenant.contains('\0') => {
            Ok(Tenant::new(tenant))
        }
        None if settings.tenant_claim.is_none() => Ok(Tenant::default()),
        None => Err(refused(&format!("it has no claim '{name}', which names the tenant"))),
        Some(_) => Err(refused(&format!("its claim '{name}' names no tenant"))),
    }
}

/// A claim by its name, or by its path into objects.
fn at<'a>(claims: &'a Value, path: &str) -> Option<&'a Value> {
    // A provider may have a claim whose name holds dots, as an address does.
    claims.get(path).or_else(|| path.split('.').try_fold(claims, |value, name| value.get(name)))
}

fn refused(why: &str) -> OidcError {
    OidcError::Refused(format!("the token is not taken: {why}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn roles_and_tenant_are_read_from_the_claims_that_are_named() {
        let mut settings = OidcSettings {
            issuer: "https://id.example".into(),
            audience: "noetl".into(),
            roles_claim: "roles".into(),
            tenant_claim: None,
            client_id: None,
        };
        let caller_of = |settings: &OidcSettings, claims: &Value| {
            caller_of(settings, claims).expect("a caller")
        };
        let claims = json!({
            "sub": "7", "email": "ada@example.org", "roles": ["viewer", "boss", "worker"],
            "tenant": "acme", "realm_access": {"roles": "operator admin"}, "https://n/t": "other",
        });
        let caller = caller_of(&settings, &claims);
        assert_eq!((&*caller.name, caller.tenant.as_str()), ("ada@example.org", "acme"));
        assert_eq!(caller.roles, Roles::of(Role::Viewer).and(Roles::of(Role::Worker)));
        settings.roles_claim = "realm_access.roles".into();
        settings.tenant_claim = Some("https://n/t".into());
        let caller = caller_of(&settings, &claims);
        assert_eq!(caller.roles, Roles::of(Role::Operator).and(Roles::of(Role::Admin)));
        assert_eq!(caller.tenant.as_str(), "other");
        settings.roles_claim = "nothing".into();
        assert_eq!(caller_of(&settings, &claims).roles, Roles::NONE);
    }

    #[test]
    fn nobody_is_of_the_default_tenant_by_mistake() {
        let mut settings = OidcSettings {
            issuer: "https://id.example".into(),
            audience: "noetl".into(),
            roles_claim: "roles".into(),
            tenant_claim: None,
            client_id: None,
        };
        let of = |settings: &OidcSettings, claims: Value| {
            caller_of(settings, &claims).map(|caller| caller.tenant.to_string())
        };
        assert_eq!(of(&settings, json!({"sub": "7"})).expect("a caller"), Tenant::DEFAULT);
        settings.tenant_claim = Some("org".into());
        assert_eq!(of(&settings, json!({"org": "acme"})).expect("a caller"), "acme");
        let missing = of(&settings, json!({"sub": "7", "tenant": "acme"})).expect_err("refused");
        assert!(missing.to_string().contains("it has no claim 'org'"), "{missing}");
        for unreadable in [json!(""), json!(" "), json!(7), json!(["acme"]), json!(null)] {
            for claim in [None, Some("org".to_owned())] {
                settings.tenant_claim = claim;
                let name = settings.tenant_claim.as_deref().unwrap_or("tenant");
                let refused = of(&settings, json!({name: unreadable})).expect_err("refused");
                assert!(refused.to_string().contains("names no tenant"), "{refused}");
            }
        }
    }
}
