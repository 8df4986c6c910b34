//! Decoder from YAML to a checked [`Playbook`].
//!
//! Each file decodes a single noun of the language. A decoder reports every mistake through its
//! `Context` and continues with the valid parts, so that a single pass finds all mistakes.
//! Deprecated forms are accepted with a warning that contains the rewrite. Constructs that the
//! language defines but this version cannot run are rejected by name. Decoders neither render
//! templates nor read a clock.

mod admit;
mod amount;
mod arc;
mod branches;
mod claim;
mod context;
mod cursor;
mod describe;
mod duration;
mod executor;
mod fields;
mod flow;
mod guard;
mod keychain;
mod keys;
mod kinds;
mod r#loop;
mod metadata;
mod names;
mod next;
mod notify;
mod policy;
mod root;
mod schedule;
mod select;
mod set;
mod split;
mod step;
mod subscription;
mod suggest;
mod task;
mod tool;
mod ui;
mod value;
mod workbook;
mod workflow;

#[cfg(test)]
mod tests;

pub use describe::{Description, describe};
pub use duration::{seconds_in, timeout_of};
pub use kinds::KNOWN_KINDS;
pub use schedule::{CheckedSchedule, check_schedule, is_schedule};
pub use subscription::{
    CheckedSubscription, check_subscription, is_subscription, subscription_spec,
};
pub use ui::{UiField, UiSchema, ui_schema};

use context::Context;
use cursor::Cursor;

use crate::diagnostic::Diagnostic;
use crate::diagnostics::Diagnostics;
use crate::document::Playbook;
use crate::yaml::{self, Node, SourceText};

/// Result of checking a playbook with [`check`].
#[derive(Debug)]
pub struct CheckReport {
    /// Compiled playbook. Present if and only if no diagnostic is an error.
    pub playbook: Option<Playbook>,
    /// All diagnostics, sorted by position.
    pub diagnostics: Vec<Diagnostic>,
}

/// Parses, checks, and compiles a playbook in time linear in the length of the text.
pub fn check(text: &str) -> CheckReport {
    let (mut cx, root) = open(text);
    let playbook = root.and_then(|node| root::decode(&mut cx, &Cursor::root(&node)));
    let playbook = playbook.filter(|_| !cx.findings.has_errors());
    CheckReport { playbook, diagnostics: cx.findings.into_sorted() }
}

/// Parses a document that contains only data, in YAML or JSON.
///
/// # Errors
///
/// Returns the diagnostics with their positions if the document is invalid.
pub fn read_data(text: &str) -> Result<serde_json::Value, Vec<Diagnostic>> {
    let (mut cx, root) = open(text);
    let data = root.map(|node| value::literal(&mut cx, &Cursor::root(&node)));
    data.filter(|_| !cx.findings.has_errors()).ok_or_else(|| cx.findings.into_sorted())
}

/// Parses the YAML of a document.
fn open(text: &str) -> (Context<'_>, Option<Node>) {
    let source = SourceText::new(text.trim_start_matches('\u{feff}'));
    let mut findings = Diagnostics::default();
    let node = yaml::read(&source, &mut findings);
    (Context::new(source, findings), node)
}
