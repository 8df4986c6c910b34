//! YAML to a checked, compiled playbook.
//!
//! [`check`] reads a document, names every mistake with its line, column and path, and returns the
//! compiled form when there is no error. Pure: it never touches a file, a clock or the network.
//! Templates are compiled here, once per playbook version; [`template`] renders them.

mod decode;
pub mod diagnostic;
pub mod document;
mod findings;
pub mod graph;
pub mod template;
mod yaml;

pub use decode::{Checked, Description, KNOWN_KINDS, check, describe};
pub use diagnostic::{Diagnostic, Severity};
pub use document::{Playbook, StepIx};
