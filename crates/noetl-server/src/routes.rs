//! The handlers, one file per noun: extractors, one call, a reply.

pub(crate) mod callback;
pub(crate) mod catalog;
pub(crate) mod cleanup;
pub(crate) mod commands;
pub(crate) mod credentials;
pub(crate) mod dashboard;
pub(crate) mod database;
pub(crate) mod events;
pub(crate) mod execute;
pub(crate) mod executions;
pub(crate) mod fallback;
pub(crate) mod health;
pub(crate) mod ingress;
pub(crate) mod intake;
pub(crate) mod metrics;
pub(crate) mod outbox;
pub(crate) mod pools;
pub(crate) mod projection;
pub(crate) mod replay;
pub(crate) mod runtime;
mod said;
pub(crate) mod subscriptions;
pub(crate) mod system;
pub(crate) mod workers;
