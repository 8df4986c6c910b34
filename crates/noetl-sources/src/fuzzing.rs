//! Entry points for fuzzing the parsers of broker responses. Not for use by programs, which use a
//! source.

pub use crate::kafka::fuzzing::read as kafka;
