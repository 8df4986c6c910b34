//! `executor`: execution settings of the playbook.

use std::time::Duration;

use super::context::Context;
use super::cursor::Cursor;
use super::{duration, keys};
use crate::yaml::NodeKind;

const KEYS: &[&str] = &["profile", "version", "requires", "spec", "kind", "desc"];
const SPEC_KEYS: &[&str] = &["entry_step", "final_step", "no_next_is_error", "policy", "pool"];
const POLICY_KEYS: &[&str] = &["defaults", "limits", "results"];

/// Names of a timeout under `policy.defaults`.
const TIMEOUTS: &[&str] = &["timeout", "timeout_s", "timeout_seconds"];

/// Settings of `executor`, except for the first and last steps.
#[derive(Debug, Default)]
pub(super) struct Executor {
    pub(super) no_next_is_error: bool,
    /// Time limit of an execution.
    pub(super) deadline: Option<Duration>,
    /// Timeout of tools that have none of their own.
    pub(super) timeout: Option<Duration>,
}

/// Decodes `executor`. Profile, version, and requirements describe other runners and have no effect
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
    if let Some(key) = spec.key("pool") {
        let message = "'pool' has no effect; who starts an execution says which workers take it";
        cx.warning_at("W114", key, message, "remove it, and start with 'execution_pool'");
    }
    if let Some(policy) = spec.get("policy") {
        self::policy(cx, &policy, &mut executor);
    }
    if let Some(value) = spec.get("no_next_is_error") {
        match value.node.kind {
            NodeKind::Bool(answer) => executor.no_next_is_error = answer,
            _ => cx.expected(&value, "true or false", "write true or false"),
        }
    }
    executor
}

fn policy(cx: &mut Context<'_>, at: &Cursor<'_>, executor: &mut Executor) {
    let help = "write 'policy: {limits: {deadline_s: 3600}}'";
    if !cx.is_map(at, help) {
        return;
    }
    keys::warn_unknown(cx, at, POLICY_KEYS, keys::none);
    if let Some(limits) = at.get("limits").filter(|limits| cx.is_map(limits, help)) {
        for (key, value) in limits.entries() {
            match &*key.name {
                "deadline_s" if !value.node.is_null() => {
                    executor.deadline = duration::timeout(cx, &value);
                }
                name => useless(cx, &value, name, "remove it; the server's own limits hold"),
            }
        }
    }
    if let Some(defaults) = at.get("defaults").filter(|defaults| cx.is_map(defaults, help)) {
        for (key, value) in defaults.entries() {
            if TIMEOUTS.contains(&&*key.name) && !value.node.is_null() {
                executor.timeout = duration::timeout(cx, &value);
            } else {
                let help =
                    "write it where it is meant: 'timeout' and 'spec.policy.rules' of a tool";
                useless(cx, &value, &key.name, help);
            }
        }
    }
    if let Some(results) = at.get("results") {
        let help = "remove it; a large result is kept beside the log by itself";
        useless(cx, &results, "results", help);
    }
}

fn useless(cx: &mut Context<'_>, at: &Cursor<'_>, name: &str, help: &str) {
    cx.warning("W114", at, format!("'{name}' of the executor's policy has no effect"), help);
}
