//! [`StepLogStore`] of the in-memory store.

use std::collections::BTreeMap;

use async_trait::async_trait;
use noetl_model::{CommandId, ExecutionId};

use super::MemoryStore;
use crate::StoreError;
use crate::step_logs::{
    EXECUTION_BYTES_MAX, LogBudget, LogGap, LogLine, LogQuery, NewLine, SkippedLines, StepLogStore,
};

/// The step logs of one execution.
#[derive(Debug, Default)]
pub(super) struct LogBuffer {
    last: u64,
    bytes: u64,
    pub(super) kept: BTreeMap<u64, NewLine>,
    commands: BTreeMap<CommandId, LogBudget>,
}

impl LogBuffer {
    fn append(&mut self, lines: Vec<NewLine>) -> u64 {
        for line in lines {
            self.last += 1;
            let (command, cost) = (line.command, line.cost());
            let counted = self.commands.entry(command).or_default();
            if self.bytes + cost > EXECUTION_BYTES_MAX {
                counted.pass_over(1, cost);
                continue;
            }
            counted.add(self.last, cost);
            self.bytes += cost;
            self.kept.insert(self.last, line);
            self.cut(command);
        }
        self.last
    }

    fn cut(&mut self, command: CommandId) {
        let Some(counted) = self.commands.get_mut(&command) else { return };
        let excess = counted.excess();
        if excess == 0 {
            return;
        }
        let (mut going, mut bytes) = (Vec::new(), 0);
        for (n, line) in self.kept.range(counted.head_until + 1..) {
            if bytes >= excess {
                break;
            }
            if line.command == command {
                going.push(*n);
                bytes += line.cost();
            }
        }
        counted.cut(going.len() as u64, bytes);
        self.bytes -= bytes;
        for n in going {
            self.kept.remove(&n);
        }
    }
}

#[async_trait]
impl StepLogStore for MemoryStore {
    async fn append_lines(
        &self,
        execution: ExecutionId,
        lines: Vec<NewLine>,
    ) -> Result<Option<u64>, StoreError> {
        let mut state = self.state();
        if !state.executions.contains_key(&execution) {
            return Ok(None);
        }
        Ok(Some(state.lines.entry(execution).or_default().append(lines)))
    }

    async fn pass_over_lines(
        &self,
        execution: ExecutionId,
        lost: Vec<SkippedLines>,
    ) -> Result<bool, StoreError> {
        let mut state = self.state();
        if !state.executions.contains_key(&execution) {
            return Ok(false);
        }
        let lines = state.lines.entry(execution).or_default();
        for SkippedLines { command, lines: count, bytes } in lost {
            lines.last += count;
            lines.commands.entry(command).or_default().pass_over(count, bytes);
        }
        Ok(true)
    }

    async fn lines(
        &self,
        execution: ExecutionId,
        query: LogQuery,
    ) -> Result<Vec<LogLine>, StoreError> {
        let state = self.state();
        let Some(lines) = state.lines.get(&execution) else { return Ok(Vec::new()) };
        let Some(from) = query.after.checked_add(1) else { return Ok(Vec::new()) };
        let meant = |line: &NewLine| query.command.is_none_or(|command| line.command == command);
        let found = lines.kept.range(from..).filter(|(_, line)| meant(line)).take(query.limit);
        Ok(found.map(|(n, line)| LogLine { n: *n, line: line.clone() }).collect())
    }

    async fn gaps(
        &self,
        execution: ExecutionId,
        command: Option<CommandId>,
    ) -> Result<Vec<LogGap>, StoreError> {
        let state = self.state();
        let Some(lines) = state.lines.get(&execution) else { return Ok(Vec::new()) };
        let meant = lines.commands.iter().filter(|(of, _)| command.is_none_or(|c| c == **of));
        Ok(meant.filter_map(|(of, counted)| counted.gap(*of)).collect())
    }
}
