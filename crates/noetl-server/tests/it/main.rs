//! The routes, asked over a socket: status and body of every answer.

mod access;
mod api;
mod callbacks;
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
mod leases;
mod metrics;
mod outbox;
mod overview;
mod pools;
mod projection;
mod replay;
mod runtime;
mod stores;
mod subscriptions;
