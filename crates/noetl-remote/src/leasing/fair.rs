//! Orders pending commands: oldest first, and no execution twice in a row while others have some.

use std::collections::{HashMap, VecDeque};

use noetl_model::ExecutionId;
use noetl_store::CommandRow;

/// Sorts commands round-robin: one of each execution, then the next of each. Puts the execution
/// that was served last behind the others.
pub(super) fn interleave_executions(
    waiting: Vec<CommandRow>,
    last: Option<ExecutionId>,
) -> Vec<CommandRow> {
    let mut places: HashMap<ExecutionId, usize> = HashMap::new();
    let mut queues: VecDeque<VecDeque<CommandRow>> = VecDeque::new();
    let count = waiting.len();
    for row in waiting {
        let place = *places.entry(row.execution).or_insert_with(|| {
            queues.push_back(VecDeque::new());
            queues.len() - 1
        });
        queues[place].push_back(row);
    }
    if let Some(place) = last.and_then(|last| places.get(&last)).copied()
        && let Some(had) = queues.remove(place)
    {
        queues.push_back(had);
    }
    let mut ordered = Vec::with_capacity(count);
    while let Some(mut queue) = queues.pop_front() {
        ordered.extend(queue.pop_front());
        if !queue.is_empty() {
            queues.push_back(queue);
        }
    }
    ordered
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use noetl_model::{CommandId, CommandState, Seq, Timestamp};

    use super::*;

    fn row((execution, id): (i64, i64)) -> CommandRow {
        CommandRow {
            id: CommandId::new(id),
            execution: ExecutionId::new(execution),
            issued: Seq(1),
            step: Arc::from("a"),
            tool: Arc::from("noop"),
            attempt: 1,
            pool: Arc::from("shared"),
            limit_ms: None,
            state: CommandState::Pending,
            worker: None,
            issued_at: Timestamp::from_micros(0),
            ended_at: None,
        }
    }

    fn ordered(waiting: &[(i64, i64)], last: Option<i64>) -> Vec<i64> {
        let rows = waiting.iter().copied().map(row).collect();
        let rows = interleave_executions(rows, last.map(ExecutionId::new));
        rows.iter().map(|row| row.id.get()).collect()
    }

    #[test]
    fn executions_take_turns_oldest_first() {
        let waiting = [(1, 10), (1, 11), (1, 12), (2, 13), (3, 14), (2, 15)];
        assert_eq!(ordered(&waiting, None), [10, 13, 14, 11, 15, 12]);
    }

    #[test]
    fn the_tenant_served_last_is_served_after_the_others() {
        assert_eq!(ordered(&[(1, 10), (1, 11), (2, 12)], Some(1)), [12, 10, 11]);
        assert_eq!(ordered(&[(1, 10), (1, 11)], Some(1)), [10, 11]);
        assert_eq!(ordered(&[(1, 10)], Some(9)), [10]);
        assert_eq!(ordered(&[], Some(1)), [0_i64; 0]);
    }
}
