//! What tests share: a clock moved by hand, a store that can be made to fail, a running app, a whole
//! world on simulated time.
//!
//! Nothing here ships. Every part closes what it opened, so a test leaves neither a task nor a
//! socket behind.

mod app;
mod clock;
mod collector;
pub mod nats;
mod place;
pub mod postgres;
pub mod service;
mod store;
mod tools;
pub mod twin;
pub mod upgrade;
pub mod world;

pub use app::{TestApp, TestAppBuilder, worker};
pub use clock::SimClock;
pub use collector::{Answer, Collected, Collector, attribute};
pub use store::{CommitFault, FrailStore, Line};
pub use tools::{Echo, Noop};
