//! Tokens that were asked for, kept until they expire.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use noetl_model::{ExecutionId, Failure, Map, Timestamp};

/// How many tokens are kept; past that those that have expired make room, then all of them.
const TOKENS_MAX: usize = 1024;

/// How long before its end a token is not used any more: a request takes its time.
const MARGIN: Duration = Duration::from_secs(30);

/// How many tokens are remembered for marks; past that the one that was used first is forgotten.
const USED_MAX: usize = 4096;

/// Tokens by what was asked for them. Whoever can ask the same has the same secrets.
#[derive(Default)]
pub(crate) struct Tokens {
    slots: Mutex<HashMap<String, Arc<Slot>>>,
    used: Mutex<Used>,
}

/// Tokens by the execution that used them and the name its marks have. Two playbooks may give the same
/// name to different tokens, and neither is to be sent the other's.
#[derive(Default)]
struct Used {
    fields: HashMap<(ExecutionId, String), Map>,
    /// The oldest first.
    order: VecDeque<(ExecutionId, String)>,
}

/// The place of one token; held while it is asked for, so that it is asked for once.
type Slot = tokio::sync::Mutex<Option<Token>>;

/// A token with the other fields of its answer.
#[derive(Clone)]
pub(crate) struct Token {
    pub(crate) fields: Map,
    /// Until when it is used; `None` for one that is used once.
    until: Option<Timestamp>,
}

impl Token {
    /// A token that is good for so long from now, if that is known.
    pub(crate) fn new(fields: Map, now: Timestamp, good_for: Option<Duration>) -> Self {
        // A token of a minute would otherwise be asked for each time.
        let usable = |good_for: Duration| good_for.saturating_sub(MARGIN.min(good_for / 2));
        let until = good_for.map(|good_for| now.plus(usable(good_for)));
        Self { fields, until }
    }

    fn is_good(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| now < until)
    }
}

impl Tokens {
    /// The token of a request, asked for unless one is at hand.
    pub(crate) async fn get<F>(
        &self,
        request: String,
        now: Timestamp,
        ask: F,
    ) -> Result<Token, Failure>
    where
        F: Future<Output = Result<Token, Failure>>,
    {
        let slot = self.slot(request, now);
        let mut held = slot.lock().await;
        if let Some(token) = held.as_ref().filter(|token| token.is_good(now)) {
            return Ok(token.clone());
        }
        let token = ask.await?;
        *held = token.until.is_some().then(|| token.clone());
        Ok(token)
    }

    /// Remembers what the marks of an execution with this name stand for: the newest token.
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

    /// What the marks of an execution with this name stand for, if this process knows.
    pub(crate) fn used(&self, execution: ExecutionId, label: &str) -> Option<Map> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.fields.get(&(execution, label.to_owned())).cloned()
    }

    /// Forgets the token of a request: somebody did not take it.
    pub(crate) fn forget(&self, request: &str) {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).remove(request);
    }

    fn slot(&self, request: String, now: Timestamp) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= TOKENS_MAX && !slots.contains_key(&request) {
            slots.retain(|_, slot| {
                let held = slot.try_lock();
                held.map_or(true, |held| held.as_ref().is_some_and(|token| token.is_good(now)))
            });
            if slots.len() >= TOKENS_MAX {
                slots.clear();
            }
        }
        slots.entry(request).or_default().clone()
    }
}
