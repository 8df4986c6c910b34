//! Authentication of callers by tokens of an OpenID Connect provider.
//!
//! The server finds the provider's keys through its discovery document and caches them. A token
//! signed with an unknown key triggers a refresh, at most once per [`AGAIN`]. Only public-key
//! signatures are accepted, because the provider doesn't share its secrets.

mod sign_in;
mod signatures;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use noetl_egress::{DefaultAccess, EgressPolicy};
use noetl_model::{Tenant, Value};
use noetl_playbook::subscription::PUSH_ISSUER;
use noetl_secrets::Role;
use serde::Deserialize;

use self::sign_in::Endpoints;
pub use self::sign_in::{CodeExchange, IssuedToken, ProviderEndpoint};
use crate::caller::Caller;
use crate::error::AccessError;
use crate::roles::Roles;

/// Age from which cached keys are refreshed in the background.
const KEPT: Duration = Duration::from_secs(600);
/// Minimum interval between two requests for keys.
const AGAIN: Duration = Duration::from_secs(10);
/// Maximum age of cached keys while the provider is unavailable.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);
/// Timeout of requests to the provider.
const ANSWER: Duration = Duration::from_secs(10);
/// Tolerated clock difference, in seconds.
const LEEWAY: u64 = 60;

/// Maximum size of a provider's response, in bytes. Keys and discovery documents have a few KiB.
const ANSWER_MAX: usize = 1 << 20;

/// Maximum redirects per request to a provider.
const REDIRECTS_MAX: usize = 3;

/// Maximum cached providers of listeners.
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

/// Settings of an identity provider.
#[derive(Debug, Clone)]
pub struct OidcSettings {
    /// Issuer URL, as in the `iss` claim of its tokens.
    pub issuer: String,
    /// Required audience (`aud`) of tokens.
    pub audience: String,
    /// Claim that lists roles. Dots separate the keys of nested objects.
    pub roles_claim: String,
    /// Claim that names the tenant. If set, tokens without the claim are rejected. Default:
    /// `tenant`, and tokens without it belong to the default tenant.
    pub tenant_claim: Option<String>,
    /// Client ID of the web UI at the provider. Default: none, so users sign in with a token.
    pub client_id: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    /// The token is invalid, or issued by another provider or for another audience.
    #[error("{0}")]
    Refused(String),
    /// The provider's keys are unavailable.
    #[error("{0}")]
    Unavailable(String),
}

impl From<OidcError> for AccessError {
    fn from(failure: OidcError) -> Self {
        match failure {
            OidcError::Refused(why) => Self::unknown_caller(why),
            OidcError::Unavailable(why) => {
                tracing::warn!(why, "identity provider unavailable");
                let message = "the identity provider does not answer";
                Self::unavailable("identity_provider_unavailable", message)
            }
        }
    }
}

/// Client of an identity provider. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Oidc(Arc<OidcInner>);

#[derive(Debug)]
struct OidcInner {
    settings: OidcSettings,
    http: reqwest::Client,
    egress: EgressPolicy,
    /// Locked for an assignment only, never during a request to the provider.
    keys: Mutex<Keys>,
    asking: tokio::sync::Mutex<()>,
    /// Cached sign-in endpoints, with the time they were read.
    endpoints: Mutex<Option<(Instant, Endpoints)>>,
}

#[derive(Debug, Clone, Default)]
struct Keys {
    set: Option<Arc<JwkSet>>,
    read: Option<Instant>,
    /// Time of the last request for keys, whether or not it succeeded.
    asked: Option<Instant>,
    /// Error of the last request. `None` if it succeeded.
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
    /// Creates the client of a provider. The first request is made for the first token.
    pub fn new(settings: OidcSettings) -> io::Result<Self> {
        // The operator configured this address, so the egress policy allows every address.
        let anywhere =
            EgressPolicy::new(DefaultAccess::Everything, "").map_err(io::Error::other)?;
        Self::with_egress_policy(settings, anywhere)
    }

    fn with_egress_policy(settings: OidcSettings, egress: EgressPolicy) -> io::Result<Self> {
        signatures::install();
        // Another part of the program may have installed a provider before, which works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().timeout(ANSWER);
        let http = egress.around(http.redirect(egress.redirects(REDIRECTS_MAX))).build();
        let http = http.map_err(io::Error::other)?;
        Ok(Self(Arc::new(OidcInner {
            settings,
            http,
            egress,
            keys: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
            endpoints: Mutex::default(),
        })))
    }

    /// Returns the caller that a valid token names.
    pub async fn caller(&self, token: &str) -> Result<Caller, OidcError> {
        let settings = &self.0.settings;
        let claims = self.verified(token, Some(&settings.audience)).await?;
        caller_of(settings, &claims)
    }

    /// Returns the claims of a valid token, without a check of its audience.
    pub async fn claims(&self, token: &str) -> Result<Value, OidcError> {
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
            // Google's tokens contain the issuer in either form.
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

    /// Returns the key that a token names, or the only key for its algorithm if it names none. A
    /// token with a cached key never waits for the provider.
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

    /// Fetches the keys, unless another task did so within [`AGAIN`].
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
        self.0.egress.check(&url).map_err(|error| error.to_string())?;
        let asked = self.0.http.get(url).send().await.map_err(failed)?;
        let mut asked = asked.error_for_status().map_err(failed)?;
        let mut said = Vec::new();
        // Checked while reading, because a small compressed response can expand to a large one.
        while let Some(part) = asked.chunk().await.map_err(failed)? {
            said.extend_from_slice(&part);
            if said.len() > ANSWER_MAX {
                return Err(format!("{address} says more than {ANSWER_MAX} bytes"));
            }
        }
        serde_json::from_slice(&said).map_err(|error| format!("{address}: {error}"))
    }
}

/// Clients of the providers that listeners name, by issuer URL. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Issuers {
    known: Arc<Mutex<HashMap<String, Oidc>>>,
    egress: EgressPolicy,
}

impl Issuers {
    /// Creates a cache whose requests obey an egress policy, because authors of listeners choose
    /// the provider.
    pub fn with_policy(egress: EgressPolicy) -> Self {
        Self { known: Arc::default(), egress }
    }

    /// Returns the client of a provider, with its cached keys.
    pub fn client_of(&self, issuer: &str) -> io::Result<Oidc> {
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
        let provider = Oidc::with_egress_policy(settings, self.egress.clone())?;
        // Only documents name providers, so there are few. Above the limit the cache starts empty.
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
    let named = claim_at(claims, &settings.roles_claim);
    let names: Vec<&str> = match named {
        Some(Value::String(list)) => list.split([' ', ',']).collect(),
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let roles = names.into_iter().filter_map(|name| name.parse::<Role>().ok());
    let roles = roles.map(Roles::for_role).fold(Roles::NONE, Roles::and);
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

/// Returns the tenant of a token's holder. The default tenant manages resources that all tenants
/// share, so a missing required claim or an invalid one is rejected instead of mapped to that
/// tenant.
fn tenant_of(settings: &OidcSettings, claims: &Value) -> Result<Tenant, OidcError> {
    let name = settings.tenant_claim.as_deref().unwrap_or("tenant");
    match claim_at(claims, name) {
        Some(Value::String(tenant)) if !tenant.trim().is_empty() && !tenant.contains('\0') => {
            Ok(Tenant::new(tenant))
        }
        None if settings.tenant_claim.is_none() => Ok(Tenant::default()),
        None => Err(refused(&format!("it has no claim '{name}', which names the tenant"))),
        Some(_) => Err(refused(&format!("its claim '{name}' names no tenant"))),
    }
}

/// Returns a claim by its name or by its path in nested objects.
fn claim_at<'a>(claims: &'a Value, path: &str) -> Option<&'a Value> {
    // The name of a claim may itself contain dots, as a URL does.
    claims.get(path).or_else(|| path.split('.').try_fold(claims, |value, name| value.get(name)))
}

fn refused(why: &str) -> OidcError {
    OidcError::Refused(format!("the token is not taken: {why}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settings() -> OidcSettings {
        OidcSettings {
            issuer: "https://id.example".into(),
            audience: "noetl".into(),
            roles_claim: "roles".into(),
            tenant_claim: None,
            client_id: None,
        }
    }

    #[test]
    fn roles_and_tenant_are_read_from_the_claims_that_are_named() {
        let mut settings = settings();
        let caller_of = |settings: &OidcSettings, claims: &Value| {
            caller_of(settings, claims).expect("a caller")
        };
        let claims = json!({
            "sub": "7", "email": "ada@example.org", "roles": ["viewer", "boss", "worker"],
            "tenant": "acme", "realm_access": {"roles": "operator admin"}, "https://n/t": "other",
        });
        let caller = caller_of(&settings, &claims);
        assert_eq!((&*caller.name, caller.tenant.as_str()), ("ada@example.org", "acme"));
        assert_eq!(caller.roles, Roles::for_role(Role::Viewer).and(Roles::for_role(Role::Worker)));
        settings.roles_claim = "realm_access.roles".into();
        settings.tenant_claim = Some("https://n/t".into());
        let caller = caller_of(&settings, &claims);
        assert_eq!(caller.roles, Roles::for_role(Role::Operator).and(Roles::for_role(Role::Admin)));
        assert_eq!(caller.tenant.as_str(), "other");
        settings.roles_claim = "nothing".into();
        assert_eq!(caller_of(&settings, &claims).roles, Roles::NONE);
    }

    #[test]
    fn callers_without_a_tenant_claim_are_not_of_the_default_tenant() {
        let mut settings = settings();
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
