//! The clock seam.

use crate::Timestamp;

/// Says what time it is. Programs use the system clock, tests one they move by hand.
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
}
