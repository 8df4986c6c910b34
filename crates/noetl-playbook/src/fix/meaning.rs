//! Canonical text of a playbook's meaning, by which two playbooks are compared.

use std::fmt::Write as _;

use crate::document::{Playbook, StepWork};

/// Returns a text that is equal for playbooks with the same meaning. Deprecated template names and
/// their replacements yield the same text.
pub(super) fn meaning_of(playbook: &Playbook) -> String {
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
        // The source of a pipeline repeats its tasks, possibly with deprecated names, so only the
        // tasks count.
        let _ = match &step.work {
            StepWork::Pipeline(pipeline) => write!(text, "{:?}", pipeline.tasks),
            StepWork::Split(split) => {
                let limits: Vec<_> = split.calls().map(|call| &call.limit).collect();
                write!(text, "{:?}{limits:?}", split.tasks().collect::<Vec<_>>())
            }
            work => write!(text, "{work:?}"),
        };
    }
    canonical(&text)
}

/// Replaces `outcome` with `output` within templates, which print as `Template("…")`.
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

/// Returns the end of a debug-printed string.
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
