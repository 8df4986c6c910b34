//! The routes, asked over a socket: status and body of every answer.

mod access;
mod api;
mod catalog;
mod commands;
mod credentials;
mod errors;
mod events;
mod executions;
mod health;
mod hostile;
mod ingress;
mod stores;
mod subscriptions;
