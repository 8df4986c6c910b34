//! Trouble with a source or with the control plane, told in the subscription's log when it begins and
//! when it ends. A control plane that is away is told when it is back.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use noetl_model::Value;
use serde_json::json;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::plane::{Note, Plane, Standing};

/// How long until trouble that comes and goes is told again.
const TOLD_EVERY: Duration = Duration::from_secs(30);

/// How long the log may take to be told.
const TELL_TIMEOUT: Duration = Duration::from_secs(5);

/// How much of a reason is told.
const REASON_MAX: usize = 1000;

/// The types and status texts of the two events.
struct Words {
    began: (&'static str, &'static str),
    ended: (&'static str, &'static str),
}

const SOURCE: Words = Words {
    began: ("subscription.source.unavailable", "UNAVAILABLE"),
    ended: ("subscription.source.connected", "CONNECTED"),
};

const DISPATCH: Words = Words {
    began: ("subscription.circuit.opened", "OPEN"),
    ended: ("subscription.circuit.closed", "CLOSED"),
};

pub(crate) struct Trouble {
    plane: Arc<dyn Plane>,
    standing: Standing,
    words: Words,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    reason: Option<String>,
    begun: Option<Instant>,
    /// When a beginning was last told.
    told: Option<Instant>,
    /// What was told of the present trouble.
    told_reason: Option<String>,
    /// Whether an end was ever told.
    was_well: bool,
}

impl State {
    /// It begins or goes on: whether that is news, and whether the log is to be told. What came too soon to
    /// be told is told later, if it lasts.
    fn begin(&mut self, reason: &str, now: Instant) -> (bool, bool) {
        self.begun.get_or_insert(now);
        let is_new = self.reason.as_deref() != Some(reason);
        self.reason = Some(reason.to_owned());
        let is_due = self.told.is_none_or(|told| now >= told + TOLD_EVERY);
        let is_told = is_due && self.told_reason.as_deref() != Some(reason);
        if is_told {
            self.told = Some(now);
            self.told_reason = Some(reason.to_owned());
        }
        (is_new, is_told)
    }
}

impl Trouble {
    /// With the source of messages.
    pub(crate) fn source(plane: &Arc<dyn Plane>, standing: &Standing) -> Self {
        Self::new(plane, standing, SOURCE)
    }

    /// With starting executions.
    pub(crate) fn dispatch(plane: &Arc<dyn Plane>, standing: &Standing) -> Self {
        let trouble = Self::new(plane, standing, DISPATCH);
        trouble.lock().was_well = true;
        trouble
    }

    fn new(plane: &Arc<dyn Plane>, standing: &Standing, words: Words) -> Self {
        let (plane, standing) = (plane.clone(), standing.clone());
        Self { plane, standing, words, state: Mutex::default() }
    }

    /// It begins, or goes on for another reason.
    pub(crate) async fn begin(&self, reason: &str) {
        let reason: String = reason.chars().filter(|c| *c != '\0').take(REASON_MAX).collect();
        let (is_new, is_told) = self.lock().begin(&reason, Instant::now());
        // What comes too soon for the log of the subscription is in that of the process.
        if is_new {
            let event = self.words.began.0;
            warn!(subscription = self.standing.path, reason, "{event}");
        }
        if is_told {
            self.tell(self.words.began, json!({ "reason": reason })).await;
        }
    }

    pub(crate) async fn end(&self, how: &str) {
        let (reason, seconds) = {
            let mut state = self.lock();
            let is_first = !std::mem::replace(&mut state.was_well, true);
            let is_told = state.told_reason.take().is_some();
            let seconds = state.begun.take().map(|begun| begun.elapsed().as_secs());
            let reason = state.reason.take();
            // What nobody heard the beginning of has no end to be told.
            if !is_told && !is_first {
                return;
            }
            (reason, seconds)
        };
        let event = self.words.ended.0;
        info!(subscription = self.standing.path, "{event}");
        let told = match reason {
            Some(reason) => json!({ "after": reason, "seconds": seconds, "how": how }),
            None => json!({ "how": how }),
        };
        self.tell(self.words.ended, told).await;
    }

    /// As far as it can be told.
    async fn tell(&self, (event_type, status): (&'static str, &'static str), payload: Value) {
        let note = Note { log: self.standing.id.log(), event_type, status, payload };
        let told = tokio::time::timeout(TELL_TIMEOUT, self.plane.note(note)).await;
        if let Ok(Err(error)) = told {
            warn!(subscription = self.standing.path, %error, "{event_type} is not told");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_too_soon_is_told_when_it_lasts() {
        let mut state = State::default();
        let start = Instant::now();
        let at = |secs| start + Duration::from_secs(secs);
        assert_eq!(state.begin("gone", at(0)), (true, true));
        assert_eq!(state.begin("gone", at(10)), (false, false), "it is known");
        assert_eq!(state.begin("no login", at(12)), (true, false), "too soon");
        assert_eq!(state.begin("no login", at(29)), (false, false));
        assert_eq!(state.begin("no login", at(31)), (false, true), "it lasts");
        assert_eq!(state.begin("no login", at(90)), (false, false));
    }
}
