//! Connects the worker and the subscription runtime to a control plane in the same process.
//!
//! The worker and the runtime know a control plane only by traits. A remote one implements them over
//! HTTP; this crate implements them by calls.

mod services;
mod subscriptions;
mod worker;

pub use subscriptions::LocalControlPlane;
pub use worker::Worker;
