//! `executor`: how the playbook wants to be run.

use super::context::Context;
use super::cursor::Cursor;
use super::{keys, policy};
use crate::yaml::Kind;

const KEYS: &[&str] = &["profile", "version", "requires", "spec", "kind", "desc"];
const SPEC_KEYS: &[&str] = &["entry_step", "final_step", "no_next_is_error", "policy", "pool"];

/// What `executor` says, apart from the entry step.
#[derive(Debug, Default)]
pub(super) struct Executor {
    pub(super) no_next_is_error: bool,
}

/// Reads `executor`. Profile, version and requirements describe other runners and change nothing
/// here.
pub(super) fn decode(cx: &mut Context<'_>, root: &Cursor<'_>) -> Executor {
    let mut executor = Executor::default();
    let Some(at) = root.get("executor") else {
        return executor;
    };
    let help = "write 'executor: {spec: {entry_step: name}}'";
    if !cx.is_map(&at, help) {
        return executor;
    }
    keys::warn_unknown(cx, &at, KEYS, keys::none);
    let Some(spec) = at.get("spec").filter(|spec| cx.is_map(spec, help)) else {
        return executor;
    };
    keys::warn_unknown(cx, &spec, SPEC_KEYS, keys::none);
    if let Some(found) = spec.get("final_step") {
        let help = "lead every branch to that step with 'next', or name it 'end'";
        cx.unsupported(found.place(), "'final_step' is", help);
    }
    if let Some(found) = spec.get("policy") {
        policy::refuse(cx, &found);
    }
    if let Some(found) = spec.get("no_next_is_error") {
        match found.node.kind {
            Kind::Bool(answer) => executor.no_next_is_error = answer,
            _ => cx.expected(&found, "true or false", "write true or false"),
        }
    }
    executor
}
