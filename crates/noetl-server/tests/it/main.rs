//! The routes, asked over a socket: status and body of every answer.

mod access;
mod api;
mod catalog;
mod cleanup;
mod commands;
mod credentials;
mod dedup;
mod errors;
mod events;
mod executions;
mod health;
mod hostile;
mod ingress;
mod intake;
mod internal;
mod logs;
mod metrics;
mod outbox;
mod projection;
mod replay;
mod runtime;
mod steer;
mod stores;
mod stream;
mod subscriptions;
mod why;
