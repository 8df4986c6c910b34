//! Starts real services for tests through the scripts in `scripts/services`.
//!
//! Depends on no other crate of the workspace, so that testing an adapter builds only that adapter.
//! Each service is removed when its value is dropped. A test whose service is not installed calls
//! [`missing`] and returns early, which fails under CI and leaves a record on other machines.

#[cfg(feature = "otlp")]
mod collector;
mod kernel;
pub mod nats;
pub mod postgres;
mod script;
pub mod service;
mod skip;

#[cfg(feature = "otlp")]
pub use collector::{Collected, Collector, CollectorResponse, attribute};
pub use kernel::{KernelFeature, isolation_level, not_isolated};
pub use skip::{missing, services_off, unsupported};
