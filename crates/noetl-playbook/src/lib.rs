//! Compiler from YAML to a checked playbook.
//!
//! [`check`] parses a document, reports every mistake with its line, column, and path, and returns
//! the compiled form if there is no error. Pure: it never accesses a file, a clock, or the network.
//! Templates are compiled here, once per playbook version; [`noetl_template`] renders them.

pub mod assignment;
mod decode;
pub mod diagnostic;
mod diagnostics;
pub mod document;
pub mod fix;
pub mod graph;
pub mod pipeline;
pub mod python_names;
pub mod schedule;
pub mod subscription;
pub mod tool;
mod yaml;

pub use decode::{
    CheckReport, CheckedSchedule, CheckedSubscription, Description, KNOWN_KINDS, UiField, UiSchema,
    check, check_schedule, check_subscription, describe, is_schedule, is_subscription, read_data,
    seconds_in, subscription_spec, timeout_of, ui_schema,
};
pub use diagnostic::{Diagnostic, Severity};
pub use document::Playbook;
pub use graph::StepIx;
pub use schedule::Schedule;
pub use subscription::Subscription;
