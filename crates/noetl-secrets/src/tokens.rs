//! Access tokens of callers.
//!
//! A token is `noetl_<id>_<secret>`. The store has the ID and a hash of the secret, so read access
//! to the database doesn't allow impersonation. The secret has 256 random bits, so an unsalted hash
//! suffices: it cannot be guessed.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aes_gcm::aead::OsRng;
use aes_gcm::aead::rand_core::RngCore as _;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use lru::LruCache;
use noetl_model::{Clock, Tenant, Timestamp};
use noetl_store::{AccessToken, Digest, NewToken, SecretsStore, StoreError};
use subtle::ConstantTimeEq as _;

/// Prefix of every token, so leaked tokens can be recognized.
const PREFIX: &str = "noetl_";

/// Time a token read from the store is cached. A token that another process revoked remains valid
/// this long.
pub const BELIEVED: Duration = Duration::from_secs(5);

/// Maximum number of cached tokens.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(4096).expect("not zero");

/// Maximum length of a token's name, in characters.
const NAME_MAX: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Everything except internal routes.
    Admin,
    /// Starts, cancels, and repairs executions; manages workers and subscriptions.
    Operator,
    /// Writes playbooks and credentials, and starts its own playbooks.
    Author,
    /// Reads everything that is not secret.
    Viewer,
    /// Claims commands and reports about them.
    Worker,
}

impl Role {
    pub const ALL: [Self; 5] =
        [Self::Admin, Self::Operator, Self::Author, Self::Viewer, Self::Worker];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Operator => "operator",
            Self::Author => "author",
            Self::Viewer => "viewer",
            Self::Worker => "worker",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that is not a role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a role is admin, operator, author, viewer or worker, not '{0}'")]
pub struct UnknownRole(String);

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        let known = Self::ALL.into_iter().find(|role| role.as_str() == text.trim());
        known.ok_or_else(|| UnknownRole(text.chars().take(80).collect()))
    }
}

#[derive(Debug, Clone)]
pub struct TokenRequest {
    /// Purpose of the token, 1 to 200 characters.
    pub name: String,
    pub role: Role,
    /// Lifetime of the token; unlimited if `None`.
    pub lasts: Option<Duration>,
    /// Pool whose commands the holder may run; any pool if `None`. For role `worker` only.
    pub pool: Option<String>,
}

/// Errors of creating a token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The name is empty or too long.
    #[error("the name of a token has 1 to {NAME_MAX} characters")]
    Name,
    /// The pool is empty, too long, or given for another role.
    #[error("only a token of role worker has a pool, of 1 to {NAME_MAX} characters")]
    Pool,
    /// The lifetime is out of range.
    #[error("a token has to last for at least a second and for at most 100 years")]
    Lasts,
    /// The change could not be recorded in the audit log, which is required.
    #[error("failed to record the change in the audit, so nothing was changed")]
    Unrecorded(#[source] StoreError),
    #[error("store is unavailable")]
    Store(#[source] StoreError),
}

/// Maximum lifetime of a token.
const LASTS_MAX: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Holder of a verified token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenHolder {
    pub id: String,
    pub name: String,
    /// Tenant whose data the holder may access.
    pub tenant: Tenant,
    pub role: Role,
    /// Expiration time; `None` if the token does not expire.
    pub expires_at: Option<Timestamp>,
    /// Pool whose commands the holder may run; any pool if `None`.
    pub pool: Option<String>,
}

/// Creates and verifies tokens. Cheap to clone.
#[derive(Clone)]
pub struct Tokens {
    store: Arc<dyn SecretsStore>,
    clock: Arc<dyn Clock>,
    known: Arc<Mutex<LruCache<String, (AccessToken, Instant)>>>,
}

impl Tokens {
    /// Creates the service on a store.
    pub fn new(store: Arc<dyn SecretsStore>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, known: Arc::new(Mutex::new(LruCache::new(REMEMBERED))) }
    }

    /// Creates a token. Returns its row and its text, which cannot be retrieved later.
    pub async fn create(
        &self,
        tenant: &Tenant,
        request: TokenRequest,
    ) -> Result<(AccessToken, String), TokenError> {
        let (new, shown) = self.minted(request)?;
        Ok((self.keep(tenant, new).await?, shown))
    }

    /// Stores a token that [`minted`](Self::minted) returned.
    pub(crate) async fn keep(
        &self,
        tenant: &Tenant,
        new: NewToken,
    ) -> Result<AccessToken, TokenError> {
        self.store.put_token(tenant, new).await.map_err(TokenError::Store)
    }

    /// Creates an admin token of the default tenant, if no token exists. Returns its row and text.
    pub(crate) async fn create_first(&self) -> Result<Option<(AccessToken, String)>, TokenError> {
        let name = "first start".to_owned();
        let request = TokenRequest { name, role: Role::Admin, lasts: None, pool: None };
        let (new, shown) = self.minted(request)?;
        let kept = self.store.put_first_token(&Tenant::default(), new).await;
        Ok(kept.map_err(TokenError::Store)?.map(|token| (token, shown)))
    }

    /// Returns a tenant's tokens, oldest first.
    pub async fn list(&self, tenant: &Tenant) -> Result<Vec<AccessToken>, StoreError> {
        self.store.tokens(tenant).await
    }

    /// Revokes a token. Other processes reject it within [`BELIEVED`]. Returns whether it exists.
    pub async fn revoke(&self, tenant: &Tenant, id: &str) -> Result<bool, StoreError> {
        let found = self.store.revoke_token(tenant, id).await?;
        self.remembered().pop(id);
        Ok(found)
    }

    /// Returns the holder of a token, or `None` if the token is unknown, expired, or revoked.
    pub async fn holder(&self, shown: &str) -> Result<Option<TokenHolder>, StoreError> {
        let parts = shown.strip_prefix(PREFIX).and_then(|rest| rest.split_once('_'));
        let Some((id, secret)) = parts else { return Ok(None) };
        let Some(token) = self.token(id).await? else { return Ok(None) };
        let hash = Digest::of_bytes(secret.as_bytes());
        let is_its = bool::from(hash.as_bytes().ct_eq(token.kept.hash.as_bytes()));
        let is_over = token.kept.expires_at.is_some_and(|at| at <= self.clock.now());
        let Ok(role) = token.kept.role.parse() else { return Ok(None) };
        if !is_its || is_over || token.revoked_at.is_some() {
            return Ok(None);
        }
        let AccessToken { tenant, kept: NewToken { id, name, expires_at, pool, .. }, .. } = token;
        Ok(Some(TokenHolder { id, name, tenant, role, expires_at, pool }))
    }

    /// Returns a new token that is not stored yet, and its text.
    pub(crate) fn minted(&self, request: TokenRequest) -> Result<(NewToken, String), TokenError> {
        let name = request.name.trim();
        if name.is_empty() || name.chars().count() > NAME_MAX || name.contains('\0') {
            return Err(TokenError::Name);
        }
        let lasts = request.lasts;
        if lasts.is_some_and(|lasts| lasts < Duration::from_secs(1) || lasts > LASTS_MAX) {
            return Err(TokenError::Lasts);
        }
        let pool = request.pool;
        let is_pool = |pool: &String| {
            let is_text = !pool.trim().is_empty() && !pool.contains('\0');
            request.role == Role::Worker && is_text && pool.chars().count() <= NAME_MAX
        };
        if pool.as_ref().is_some_and(|pool| !is_pool(pool)) {
            return Err(TokenError::Pool);
        }
        let id = Digest::of_bytes(&chance()).to_string()[..16].to_owned();
        let secret = random_text();
        let shown = format!("{PREFIX}{id}_{secret}");
        let new = NewToken {
            id,
            hash: Digest::of_bytes(secret.as_bytes()),
            name: name.to_owned(),
            role: request.role.as_str().to_owned(),
            expires_at: lasts.map(|lasts| self.clock.now().plus(lasts)),
            pool,
        };
        Ok((new, shown))
    }

    /// Returns the token with this ID, from the cache or the store.
    async fn token(&self, id: &str) -> Result<Option<AccessToken>, StoreError> {
        let fresh = |(token, read): &(AccessToken, Instant)| {
            (read.elapsed() < BELIEVED).then(|| token.clone())
        };
        if let Some(token) = self.remembered().get(id).and_then(fresh) {
            return Ok(Some(token));
        }
        let found = self.store.token(id).await?;
        // Missing IDs are not cached: a caller can invent any number of them.
        if let Some(token) = &found {
            self.remembered().put(id.to_owned(), (token.clone(), Instant::now()));
        }
        Ok(found)
    }

    fn remembered(&self) -> MutexGuard<'_, LruCache<String, (AccessToken, Instant)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns 256 random bits as URL-safe text.
pub fn random_text() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(chance())
}

fn chance() -> [u8; 32] {
    let mut bytes = [0; 32];
    OsRng.fill_bytes(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use noetl_store::MemoryStore;

    use super::*;

    struct At(Mutex<Timestamp>);

    impl Clock for At {
        fn now(&self) -> Timestamp {
            *self.0.lock().expect("a clock")
        }
    }

    fn made() -> (Tokens, Arc<At>) {
        let clock = Arc::new(At(Mutex::new(Timestamp::from_micros(1_000_000))));
        (Tokens::new(Arc::new(MemoryStore::new()), clock.clone()), clock)
    }

    fn request(role: Role, lasts: Option<u64>) -> TokenRequest {
        TokenRequest { name: "ci".into(), role, lasts: lasts.map(Duration::from_secs), pool: None }
    }

    #[tokio::test]
    async fn a_token_is_recognized_only_by_its_text() {
        let (tokens, _) = made();
        let acme = Tenant::new("acme");
        let (kept, shown) = tokens.create(&acme, request(Role::Worker, None)).await.expect("made");
        let holder = tokens.holder(&shown).await.expect("an answer").expect("a holder");
        assert_eq!((holder.role, &holder.tenant, &*holder.name), (Role::Worker, &acme, "ci"));
        assert!(!shown.contains(&kept.kept.hash.to_string()));
        let other = tokens.create(&acme, request(Role::Admin, None)).await.expect("made").1;
        let id = |shown: &str| shown.split('_').nth(1).expect("an id").to_owned();
        let crossed = other.replace(&id(&other), &id(&shown));
        let long = format!("{shown}A");
        let upper = shown.to_uppercase();
        let hashed = format!("noetl_{}_{}", kept.kept.id, kept.kept.hash);
        let short = &shown[..shown.len() - 1];
        for wrong in [&crossed, &long, &upper, &hashed, short, "", "noetl_", "noetl__", "x"] {
            assert_eq!(tokens.holder(wrong).await.expect("an answer"), None, "{wrong}");
        }
    }

    #[tokio::test]
    async fn a_token_counts_until_it_expires_or_is_revoked() {
        let (tokens, clock) = made();
        let tenant = Tenant::default();
        let (_, brief) = tokens.create(&tenant, request(Role::Viewer, Some(10))).await.expect("");
        let (kept, long) = tokens.create(&tenant, request(Role::Viewer, None)).await.expect("");
        *clock.0.lock().expect("a clock") = Timestamp::from_micros(10_999_999);
        assert!(tokens.holder(&brief).await.expect("an answer").is_some());
        *clock.0.lock().expect("a clock") = Timestamp::from_micros(11_000_000);
        assert!(tokens.holder(&brief).await.expect("an answer").is_none());
        assert!(tokens.holder(&long).await.expect("an answer").is_some());
        assert!(!tokens.revoke(&Tenant::new("other"), &kept.kept.id).await.expect("an answer"));
        assert!(tokens.revoke(&tenant, &kept.kept.id).await.expect("an answer"));
        assert!(tokens.holder(&long).await.expect("an answer").is_none());
    }

    #[tokio::test]
    async fn the_first_token_is_made_once() {
        let (tokens, _) = made();
        let (_, first) = tokens.create_first().await.expect("an answer").expect("a token");
        assert_eq!(tokens.create_first().await.expect("an answer"), None);
        let holder = tokens.holder(&first).await.expect("an answer").expect("a holder");
        assert_eq!(holder.role, Role::Admin);
    }

    #[tokio::test]
    async fn a_token_without_a_name_or_a_time_is_refused() {
        let (tokens, _) = made();
        let tenant = Tenant::default();
        for name in ["", "  ", "a\0b", &"x".repeat(201)] {
            let request = TokenRequest { name: name.to_owned(), ..request(Role::Admin, None) };
            assert!(matches!(tokens.create(&tenant, request).await, Err(TokenError::Name)));
        }
        for lasts in [0, u64::MAX] {
            let refused = tokens.create(&tenant, request(Role::Admin, Some(lasts))).await;
            assert!(matches!(refused, Err(TokenError::Lasts)));
        }
    }
}
