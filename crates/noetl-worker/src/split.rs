//! Segments of a pipeline that the control plane splits at its calls of playbooks.

use noetl_model::scope::{SplitScope, TaskResult};
use noetl_model::{Failure, FailureKind};
use noetl_playbook::pipeline::{PipelineEnd, earlier_blob, earlier_key, earlier_tasks, merged};
use noetl_template::{ValueRef, exact_json};

use crate::executor::CommandExecutor;
use crate::task::{CommandTask, cancelled};
use crate::values::CommandValues;

/// Returns `true` if a command has no task left: it only merges the results of earlier segments.
pub(crate) fn is_merge(command: &CommandTask) -> bool {
    let tasks = command.issued.config.get("tasks").and_then(|tasks| tasks.as_array());
    command.issued.split().is_some() && tasks.is_some_and(Vec::is_empty)
}

/// Merges the results of earlier segments.
pub(crate) async fn merge(performer: &CommandExecutor, command: &CommandTask) -> PipelineEnd {
    let Some(split) = command.issued.split() else { return cancelled() };
    let values = CommandValues::new(&*performer.values);
    match earlier(command, split, &values).await {
        None => cancelled(),
        Some(tasks) => PipelineEnd { outcome: tasks.map(merged), ..cancelled() },
    }
}

/// Reads the results of earlier segments. Returns `None` if the command is cancelled meanwhile.
pub(crate) async fn earlier(
    command: &CommandTask,
    split: &SplitScope,
    values: &CommandValues<'_>,
) -> Option<Result<Vec<TaskResult>, Failure>> {
    let carried = command.issued.scope.as_deref()?;
    let mut answers = Vec::with_capacity(split.tasks.len());
    for segment in 0..split.tasks.len() {
        let Some(reference) = earlier_blob(carried, segment) else {
            let answer = carried.earlier.get(&earlier_key(segment));
            answers.push(answer.cloned().unwrap_or_default());
            continue;
        };
        match values.find(&ValueRef::Blob(reference.clone()), &command.cancel).await? {
            Ok(data) => answers.push(exact_json(&data)),
            Err(why) => {
                let message = format!("a result of an earlier task can't be read: {why}");
                return Some(Err(Failure::new(FailureKind::TemplateError, message)));
            }
        }
    }
    let tasks = earlier_tasks(split, answers);
    Some(tasks.map_err(|message| Failure::new(FailureKind::Config, message)))
}
