//! YAML to a checked, compiled playbook.
//!
//! [`check`] reads a document, names every mistake with its line, column and path, and returns the
//! compiled form when there is no error. Pure: it never touches a file, a clock or the network.
//! Templates are compiled here, once per playbook version; [`template`] renders them.

pub mod diagnostic;
pub mod document;
pub mod graph;
pub mod template;

pub use diagnostic::{Diagnostic, Severity};
pub use document::{Playbook, StepIx};
