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
    /// Whether that of the present trouble was.
    is_told: bool,
    /// Whether an end was ever told.
    was_well: bool,
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
        let is_told = {
            let mut state = self.lock();
            let now = Instant::now();
            state.begun.get_or_insert(now);
            let is_new = state.reason.as_deref() != Some(reason.as_str());
            let is_due = state.told.is_none_or(|told| now >= told + TOLD_EVERY);
            state.reason = Some(reason.clone());
            if is_new && is_due {
                state.told = Some(now);
                state.is_told = true;
            }
            is_new && is_due
        };
        if is_told {
            let event = self.words.began.0;
            warn!(subscription = self.standing.path, reason, "{event}");
            self.tell(self.words.began, json!({ "reason": reason })).await;
        }
    }

    /// All is well.
    pub(crate) async fn end(&self, how: &str) {
        let (reason, seconds) = {
            let mut state = self.lock();
            let is_first = !std::mem::replace(&mut state.was_well, true);
            let is_told = std::mem::take(&mut state.is_told);
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
