//! The handlers, one file per noun: extractors, one call, a reply.

pub(crate) mod absent;
pub(crate) mod audit;
pub(crate) mod catalog;
pub(crate) mod cleanup;
pub(crate) mod commands;
pub(crate) mod credentials;
pub(crate) mod events;
pub(crate) mod execute;
pub(crate) mod executions;
pub(crate) mod fallback;
pub(crate) mod health;
pub(crate) mod ingress;
pub(crate) mod intake;
pub(crate) mod keychain;
pub(crate) mod keys;
pub(crate) mod metrics;
pub(crate) mod objects;
pub(crate) mod outbox;
pub(crate) mod projection;
pub(crate) mod replay;
pub(crate) mod results;
pub(crate) mod runtime;
mod said;
pub(crate) mod session;
pub(crate) mod subscriptions;
pub(crate) mod suites;
pub(crate) mod vars;
