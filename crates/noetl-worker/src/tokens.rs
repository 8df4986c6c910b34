//! Caches OAuth tokens until 30 seconds before they expire.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use noetl_model::{ExecutionId, Failure, Map, Timestamp};

/// Maximum number of cached tokens. When it is reached, expired tokens are evicted, then all of
/// them.
const TOKENS_MAX: usize = 1024;

/// Time before its expiration at which a token is no longer used, because a request takes time.
const MARGIN: Duration = Duration::from_secs(30);

/// Maximum number of tokens remembered for placeholders. Beyond it, the one used first is evicted.
const USED_MAX: usize = 4096;

/// Tokens by the request that obtains them. Callers that can send the same request have the same
/// secrets, so they may share a token.
#[derive(Default)]
pub(crate) struct TokenCache {
    slots: Mutex<HashMap<String, Arc<TokenSlot>>>,
    used: Mutex<Used>,
}

/// Tokens by the execution that used them and the label in its placeholders. Two playbooks may use
/// the same label for different tokens, and neither may receive the other's.
#[derive(Default)]
struct Used {
    fields: HashMap<(ExecutionId, String), Map>,
    /// Keys of `fields` by first use, oldest first.
    order: VecDeque<(ExecutionId, String)>,
}

/// Cache entry of a token, locked while the token is requested, so that concurrent callers send one
/// request.
type TokenSlot = tokio::sync::Mutex<Option<CachedToken>>;

/// A token with the other fields of its response.
#[derive(Clone)]
pub(crate) struct CachedToken {
    pub(crate) fields: Map,
    /// Time until which the token is used; `None` if the lifetime is unknown, so it is not cached.
    until: Option<Timestamp>,
}

impl CachedToken {
    /// Creates a token that expires `good_for` after `now`, if its lifetime is known.
    pub(crate) fn new(fields: Map, now: Timestamp, good_for: Option<Duration>) -> Self {
        // The margin is at most half the lifetime; otherwise a token valid for less than the margin
        // would be requested on every use.
        let usable = |good_for: Duration| good_for.saturating_sub(MARGIN.min(good_for / 2));
        let until = good_for.map(|good_for| now.plus(usable(good_for)));
        Self { fields, until }
    }

    fn is_good(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| now < until)
    }
}

impl TokenCache {
    /// Returns the token of a request from the cache, or obtains it with `ask`.
    pub(crate) async fn get<F>(
        &self,
        request: String,
        now: Timestamp,
        ask: F,
    ) -> Result<CachedToken, Failure>
    where
        F: Future<Output = Result<CachedToken, Failure>>,
    {
        let slot = self.slot(request, now);
        let mut cached = slot.lock().await;
        if let Some(token) = cached.as_ref().filter(|token| token.is_good(now)) {
            return Ok(token.clone());
        }
        let token = ask.await?;
        *cached = token.until.is_some().then(|| token.clone());
        Ok(token)
    }

    /// Records the newest token that an execution's placeholders with this label stand for.
    pub(crate) fn note_use(&self, execution: ExecutionId, label: &str, fields: &Map) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (execution, label.to_owned());
        if used.fields.insert(key.clone(), fields.clone()).is_none() {
            used.order.push_back(key);
        }
        if used.order.len() > USED_MAX
            && let Some(oldest) = used.order.pop_front()
        {
            used.fields.remove(&oldest);
        }
    }

    /// Returns the token that an execution's placeholders with this label stand for, if this
    /// process has used it.
    pub(crate) fn used(&self, execution: ExecutionId, label: &str) -> Option<Map> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.fields.get(&(execution, label.to_owned())).cloned()
    }

    /// Evicts the token of a request after a service rejected it.
    pub(crate) fn forget(&self, request: &str) {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).remove(request);
    }

    fn slot(&self, request: String, now: Timestamp) -> Arc<TokenSlot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= TOKENS_MAX && !slots.contains_key(&request) {
            slots.retain(|_, slot| {
                let cached = slot.try_lock();
                cached
                    .map_or(true, |cached| cached.as_ref().is_some_and(|token| token.is_good(now)))
            });
            if slots.len() >= TOKENS_MAX {
                slots.clear();
            }
        }
        slots.entry(request).or_default().clone()
    }
}
