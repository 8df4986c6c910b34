//! Triggers: what starts executions by itself. Listeners receive webhooks, schedules follow the
//! clock, starts are deduplicated by key, and messages that cannot start one become dead letters.

mod dead_letters;
mod dedup;
mod documents;
mod listeners;
mod message_starts;
mod schedules;
mod service;

pub use dead_letters::{DeadLetterError, DeadLetters};
pub use dedup::{DedupKey, DedupStart, DedupStarter, WINDOW_MAX};
pub use documents::DocumentTriggers;
pub use listeners::{
    IngressMessage, IngressService, Listener, ListenerError, ListenerVerify, Listeners,
    OpenListener, ReceiveError, ReceiveOutcome,
};
pub use message_starts::{MessageEntry, MessageStarter};
pub use schedules::{ScheduleError, ScheduleSpec, Schedules};
pub use service::{Options, TriggerDeps, Triggers};
