//! Records outages of a source or the control plane in the subscription's event log, at their start
//! and end. An outage of the control plane itself is recorded by the event at its end, which has
//! the reason.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use noetl_model::Value;
use serde_json::json;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::control_plane::{ControlPlaneClient, RuntimeEvent, SubscriptionView};

/// Minimum interval between recorded outages, for outages that recur.
const TOLD_EVERY: Duration = Duration::from_secs(30);

/// Timeout for appending an event.
const TELL_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum length of a recorded reason in characters.
const REASON_MAX: usize = 1000;

/// Event types and statuses of the start and end events.
struct OutageTexts {
    began: (&'static str, &'static str),
    ended: (&'static str, &'static str),
}

const SOURCE: OutageTexts = OutageTexts {
    began: ("subscription.source.unavailable", "UNAVAILABLE"),
    ended: ("subscription.source.connected", "CONNECTED"),
};

const DISPATCH: OutageTexts = OutageTexts {
    began: ("subscription.circuit.opened", "OPEN"),
    ended: ("subscription.circuit.closed", "CLOSED"),
};

pub(crate) struct OutageLog {
    plane: Arc<dyn ControlPlaneClient>,
    view: SubscriptionView,
    texts: OutageTexts,
    state: Mutex<OutageState>,
}

#[derive(Default)]
struct OutageState {
    reason: Option<String>,
    begun: Option<Instant>,
    /// Time when the start of an outage was last recorded.
    recorded_at: Option<Instant>,
    /// Recorded reason of the current outage.
    recorded_reason: Option<String>,
    /// Whether an end event was ever recorded.
    was_well: bool,
}

impl OutageState {
    /// Records that an outage starts or continues. Returns whether the reason is new, and whether
    /// to record an event. An outage that recurs too soon is recorded later if it persists.
    fn begin(&mut self, reason: &str, now: Instant) -> (bool, bool) {
        self.begun.get_or_insert(now);
        let is_new = self.reason.as_deref() != Some(reason);
        self.reason = Some(reason.to_owned());
        let is_due = self.recorded_at.is_none_or(|at| now >= at + TOLD_EVERY);
        let is_recorded = is_due && self.recorded_reason.as_deref() != Some(reason);
        if is_recorded {
            self.recorded_at = Some(now);
            self.recorded_reason = Some(reason.to_owned());
        }
        (is_new, is_recorded)
    }
}

impl OutageLog {
    /// Tracks outages of the message source.
    pub(crate) fn source(plane: &Arc<dyn ControlPlaneClient>, view: &SubscriptionView) -> Self {
        Self::new(plane, view, SOURCE)
    }

    /// Tracks failures to start executions.
    pub(crate) fn dispatch(plane: &Arc<dyn ControlPlaneClient>, view: &SubscriptionView) -> Self {
        let trouble = Self::new(plane, view, DISPATCH);
        trouble.lock().was_well = true;
        trouble
    }

    fn new(
        plane: &Arc<dyn ControlPlaneClient>,
        view: &SubscriptionView,
        texts: OutageTexts,
    ) -> Self {
        let (plane, view) = (plane.clone(), view.clone());
        Self { plane, view, texts, state: Mutex::default() }
    }

    /// Reports that an outage starts, or continues for another reason.
    pub(crate) async fn begin(&self, reason: &str) {
        let reason: String = reason.chars().filter(|c| *c != '\0').take(REASON_MAX).collect();
        let (is_new, is_recorded) = self.lock().begin(&reason, Instant::now());
        // The server log also has outages that recur too soon for the event log.
        if is_new {
            let event = self.texts.began.0;
            warn!(subscription = self.view.path, reason, "{event}");
        }
        if is_recorded {
            self.record(self.texts.began, json!({ "reason": reason })).await;
        }
    }

    pub(crate) async fn end(&self, how: &str) {
        let (reason, seconds) = {
            let mut state = self.lock();
            let is_first = !std::mem::replace(&mut state.was_well, true);
            let is_recorded = state.recorded_reason.take().is_some();
            let seconds = state.begun.take().map(|begun| begun.elapsed().as_secs());
            let reason = state.reason.take();
            // An outage whose start was not recorded has no end event.
            if !is_recorded && !is_first {
                return;
            }
            (reason, seconds)
        };
        let event = self.texts.ended.0;
        info!(subscription = self.view.path, "{event}");
        let payload = match reason {
            Some(reason) => json!({ "after": reason, "seconds": seconds, "how": how }),
            None => json!({ "how": how }),
        };
        self.record(self.texts.ended, payload).await;
    }

    /// Appends an event to the subscription's event log. Only logs a failure.
    async fn record(&self, (event_type, status): (&'static str, &'static str), payload: Value) {
        let note = RuntimeEvent { log: self.view.id.log(), event_type, status, payload };
        let result = tokio::time::timeout(TELL_TIMEOUT, self.plane.note(note)).await;
        if let Ok(Err(error)) = result {
            warn!(subscription = self.view.path, %error, "failed to record {event_type}");
        }
    }

    fn lock(&self) -> MutexGuard<'_, OutageState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_outages_are_logged_only_if_they_last() {
        let mut state = OutageState::default();
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
