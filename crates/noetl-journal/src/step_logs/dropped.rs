//! Records lost step log lines until they are counted in the store.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use noetl_model::{CommandId, ExecutionId};
use noetl_store::SkippedLines;
use noetl_store::step_logs::LINE_COST;
use tokio::sync::Notify;

/// Maximum number of commands whose losses are recorded. A process has fewer commands printing at a
/// time; losses of further commands are not recorded here.
const COMMANDS_MAX: usize = 4096;

/// Lost lines and bytes by command. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct DroppedLines(Arc<DroppedLinesInner>);

#[derive(Debug, Default)]
struct DroppedLinesInner {
    commands: Mutex<HashMap<(ExecutionId, CommandId), (u64, u64)>>,
    noted: Notify,
}

impl DroppedLines {
    pub(super) fn text(&self, execution: ExecutionId, command: CommandId, text: &str) {
        let text = text.strip_suffix('\n').unwrap_or(text);
        let breaks = text.bytes().filter(|byte| *byte == b'\n').count();
        let lines = u64::try_from(breaks).unwrap_or(u64::MAX - 1) + 1;
        let length = u64::try_from(text.len() - breaks).unwrap_or(u64::MAX);
        let bytes = LINE_COST.saturating_mul(lines).saturating_add(length);
        self.add(execution, SkippedLines { command, lines, bytes });
    }

    /// Records lost lines and notifies the writer.
    pub(super) fn add(&self, execution: ExecutionId, lost: SkippedLines) {
        self.put_back(execution, vec![lost]);
        self.0.noted.notify_one();
    }

    /// Records losses that could not be counted in the store, without a notification: an immediate
    /// retry would fail as well.
    pub(super) fn put_back(&self, execution: ExecutionId, lost: Vec<SkippedLines>) {
        let mut commands = self.0.commands.lock().unwrap_or_else(PoisonError::into_inner);
        for SkippedLines { command, lines, bytes } in lost {
            let is_full = commands.len() >= COMMANDS_MAX;
            let known = match commands.entry((execution, command)) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(_) if is_full => continue,
                Entry::Vacant(new) => new.insert((0, 0)),
            };
            known.0 = known.0.saturating_add(lines);
            known.1 = known.1.saturating_add(bytes);
        }
    }

    /// Removes and returns the recorded losses, by execution.
    pub(super) fn take(&self) -> HashMap<ExecutionId, Vec<SkippedLines>> {
        let mut commands = self.0.commands.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken: HashMap<ExecutionId, Vec<SkippedLines>> = HashMap::new();
        for ((execution, command), (lines, bytes)) in commands.drain() {
            taken.entry(execution).or_default().push(SkippedLines { command, lines, bytes });
        }
        taken
    }

    /// Waits until a loss is recorded.
    pub(super) async fn noted(&self) {
        self.0.noted.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_counted_in_lines_until_they_are_taken() {
        let lost = DroppedLines::default();
        let (execution, command) = (ExecutionId::new(1), CommandId::new(2));
        lost.text(execution, command, "a\nbc\n");
        lost.text(execution, command, "");
        let taken = lost.take();
        let bytes = LINE_COST * 3 + 3;
        assert_eq!(taken[&execution], [SkippedLines { command, lines: 3, bytes }]);
        assert!(lost.take().is_empty());
    }

    #[test]
    fn no_more_commands_are_remembered_than_have_room() {
        let lost = DroppedLines::default();
        let count = i64::try_from(COMMANDS_MAX).unwrap();
        for number in 0..count + 5 {
            lost.text(ExecutionId::new(1), CommandId::new(number), "x");
        }
        assert_eq!(lost.take()[&ExecutionId::new(1)].len(), COMMANDS_MAX);
    }
}
