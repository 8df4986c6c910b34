//! From YAML to a checked [`Playbook`].
//!
//! One file per noun of the language. Every decoder reports what is wrong through its `Context`
//! and goes on with what is right, so that one reading names every mistake. Older shapes are
//! accepted with a warning that carries the rewrite; what the language has but this version cannot
//! run is refused by name. Nothing here renders a template or looks at a clock.

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
use crate::document::Playbook;
use crate::findings::Findings;
use crate::yaml::{self, Node, Source};

/// The outcome of [`check`].
#[derive(Debug)]
pub struct Checked {
    /// The compiled playbook; present exactly when no finding is an error.
    pub playbook: Option<Playbook>,
    /// Everything found, by position.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads, checks and compiles a playbook. Takes time linear in the length of the text.
pub fn check(text: &str) -> Checked {
    let (mut cx, root) = open(text);
    let playbook = root.and_then(|node| root::decode(&mut cx, &Cursor::root(&node)));
    let playbook = playbook.filter(|_| !cx.findings.has_errors());
    Checked { playbook, diagnostics: cx.findings.into_sorted() }
}

/// Reads a document that is nothing but data, in YAML or JSON.
///
/// # Errors
///
/// What is wrong with it, and where.
pub fn read_data(text: &str) -> Result<serde_json::Value, Vec<Diagnostic>> {
    let (mut cx, root) = open(text);
    let data = root.map(|node| value::literal(&mut cx, &Cursor::root(&node)));
    data.filter(|_| !cx.findings.has_errors()).ok_or_else(|| cx.findings.into_sorted())
}

/// Reads the YAML of a document.
fn open(text: &str) -> (Context<'_>, Option<Node>) {
    let source = Source::new(text.trim_start_matches('\u{feff}'));
    let mut findings = Findings::default();
    let node = yaml::read(&source, &mut findings);
    (Context::new(source, findings), node)
}
