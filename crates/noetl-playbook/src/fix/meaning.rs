//! What a playbook means, as text that two playbooks can be compared by.

use std::fmt::Write as _;

use crate::document::{Playbook, Work};

/// Everything that matters about a playbook. A name of templates that has an older form is the same
/// in both.
pub(super) fn of(playbook: &Playbook) -> String {
    let mut text = format!(
        "{:?}",
        (
            &playbook.name,
            &playbook.path,
            &playbook.workload,
            &playbook.vars,
            &playbook.spec,
            playbook.entry,
            playbook.implicit_end,
            playbook.final_step,
            playbook.no_next_is_error,
            playbook.deadline,
            &playbook.notify,
            &playbook.keychain,
        )
    );
    for step in &playbook.steps {
        let around = (
            &step.name,
            &step.repeat,
            &step.when,
            &step.admit,
            (step.timeout, &step.limits),
            step.failure,
            &step.set,
            &step.router,
            step.join,
            step.on_error,
        );
        let _ = write!(text, "\n{around:?}");
        // The source of a pipeline says the same as its tasks, in words that may be older.
        let _ = match &step.work {
            Work::Pipeline(pipeline) => write!(text, "{:?}", pipeline.tasks),
            Work::Split(split) => {
                let limits: Vec<_> = split.calls().map(|call| &call.limit).collect();
                write!(text, "{:?}{limits:?}", split.tasks().collect::<Vec<_>>())
            }
            work => write!(text, "{work:?}"),
        };
    }
    canonical(&text)
}

/// The text with `output` for `outcome` within templates, which print as `Template("…")`.
fn canonical(text: &str) -> String {
    const OPENING: &str = "Template(\"";
    let mut canonical = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(OPENING) {
        let (before, template) = rest.split_at(start + OPENING.len());
        canonical.push_str(before);
        let end = closing(template);
        canonical.push_str(&template[..end].replace("outcome", "output"));
        rest = &template[end..];
    }
    canonical.push_str(rest);
    canonical
}

/// Where a printed string ends.
fn closing(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at,
            _ => {}
        }
    }
    text.len()
}
