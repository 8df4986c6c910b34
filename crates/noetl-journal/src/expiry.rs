//! Inputs that expire commands of processes that no longer run.

use noetl_engine::{Expire, Input};
use noetl_model::CommandId;
use noetl_model::command::ATTEMPTS_OVER_RESTARTS_MAX;

/// Returns the input that expires a command of a process of this store. The command may have run.
pub(crate) fn expire(command: CommandId, reason: &str) -> Input {
    Input::Expire(expire_input(command, reason, true))
}

/// Like [`expire`], for a command that may be known not to have run.
pub(crate) fn expire_input(command: CommandId, reason: &str, may_have_run: bool) -> Expire {
    let attempts_max = ATTEMPTS_OVER_RESTARTS_MAX;
    Expire { command, reason: reason.to_owned(), attempts_max, may_have_run }
}
