//! Request and response types of the HTTP API, and a client for it.
//!
//! One module per resource. Requests accept every spelling that published clients send; responses
//! have one shape. The server and the client share these types, so both use the same field names.
//! The crate contains no decision logic and no storage.
#![warn(missing_docs)]

pub mod approvals;
pub mod callbacks;
pub mod catalog;
mod client;
pub mod commands;
pub mod completions;
pub mod connection;
pub mod credentials;
pub mod dashboard;
pub mod database;
pub mod ehdb;
pub mod error;
pub mod events;
pub mod execute;
pub mod executions;
pub mod grants;
pub mod health;
mod id;
pub mod ingress;
pub mod internal;
pub mod keychain;
pub mod logs;
pub mod objects;
pub mod outbox;
pub mod replay;
pub mod results;
pub mod schedules;
pub mod session;
pub mod stream;
pub mod subscriptions;
pub mod system;
pub mod tokens;
pub mod vars;
mod version;
pub mod why;
pub mod workers;

pub use client::{
    Access, ApiCall, Client, ClientError, EventFollower, Response, SocketEvent, SocketReceiver,
    SocketSender, StreamItem, calls, loopback_address, work,
};
pub use error::{Diagnostic, ErrorBody};
pub use id::{Id, IdForm};
pub use version::Version;
