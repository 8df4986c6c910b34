//! A way in for generated input to what is read from brokers. Not for programs: a source is the way in
//! for those.

pub use crate::kafka::fuzzing::read as kafka;
