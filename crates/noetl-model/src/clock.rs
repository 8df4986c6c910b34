//! Abstraction over the source of the current time.

use crate::Timestamp;

/// Source of the current time. Programs use the system clock; tests use a clock that they advance
/// explicitly.
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
}
