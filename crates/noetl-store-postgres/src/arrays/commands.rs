//! Binds the command rows that appends insert, update, and release.

use std::collections::HashMap;

use noetl_model::{CommandId, CommandState};
use noetl_store::command_leases::{LeaseGrant, lease_of};
use noetl_store::{CommandChange, CommandRow};

use super::{Append_, AppendChain, plain, small, stored_seq};
use crate::column::{PgTimestamptz, interval};

struct New<'a> {
    row: &'a CommandRow,
    lease: Option<LeaseGrant>,
}

pub(super) fn bind_inserts<'q>(query: Append_<'q>, chains: &[AppendChain<'q>]) -> Append_<'q> {
    let inserts = chains.iter().flatten().flat_map(|item| {
        item.changes.iter().filter_map(inserted).map(|row| New {
            row,
            lease: lease_of(&item.leases, row.id, row.state, row.worker.as_deref()),
        })
    });
    columns!(
        query,
        inserts,
        |new| new.row.execution.get(),
        new.row.id.get(),
        stored_seq(new.row.issued),
        plain(&new.row.step),
        plain(&new.row.tool),
        small(new.row.attempt),
        new.row.state.as_str(),
        new.row.worker.as_deref().map(plain),
        (new.row.state.stage() == 1).then_some(PgTimestamptz(new.row.issued_at)),
        (new.row.state.stage() == 2).then_some(PgTimestamptz(new.row.issued_at)),
        new.row.ended_at.map(PgTimestamptz),
        PgTimestamptz(new.row.issued_at),
        plain(&new.row.pool),
        new.row.limit_ms,
        new.lease.map(|lease| interval(lease.lasts)),
        new.lease.is_some_and(|lease| lease.is_named),
    )
}

pub(super) fn inserted(change: &CommandChange) -> Option<&CommandRow> {
    match change {
        CommandChange::Insert(row) => Some(row),
        CommandChange::Move { .. } | CommandChange::Release { .. } => None,
    }
}

struct Moved<'a> {
    execution: i64,
    id: i64,
    state: CommandState,
    worker: Option<&'a str>,
    ended: Option<PgTimestamptz>,
    at: PgTimestamptz,
    lease: Option<LeaseGrant>,
    /// Index of the change among the changes of its command in this statement, from 1.
    turn: i16,
}

pub(super) fn bind_moves<'q>(query: Append_<'q>, chains: &[AppendChain<'q>]) -> Append_<'q> {
    let mut moves: Vec<Moved<'q>> = Vec::new();
    let mut turns: HashMap<CommandId, i16> = HashMap::new();
    for item in chains.iter().flatten() {
        for change in &item.changes {
            let CommandChange::Move { id, state, worker, ended_at } = change else { continue };
            let turn = turns.entry(*id).or_default();
            *turn = turn.saturating_add(1);
            moves.push(Moved {
                turn: *turn,
                execution: item.execution(),
                id: id.get(),
                state: *state,
                worker: worker.as_deref(),
                ended: ended_at.map(PgTimestamptz),
                at: PgTimestamptz(item.row.updated_at),
                lease: lease_of(&item.leases, *id, *state, worker.as_deref()),
            });
        }
    }
    let moves = moves.iter();
    columns!(
        query,
        moves,
        |moved| moved.execution,
        moved.id,
        moved.state.as_str(),
        i16::from(moved.state.stage()),
        moved.worker.map(plain),
        moved.ended,
        moved.at,
        moved.lease.map(|lease| interval(lease.lasts)),
        moved.lease.is_some_and(|lease| lease.is_named),
        moved.turn,
    )
}

pub(super) fn bind_releases<'q>(query: Append_<'q>, chains: &[AppendChain<'q>]) -> Append_<'q> {
    let changes = chains
        .iter()
        .flatten()
        .flat_map(|item| item.changes.iter().map(|change| (item.execution(), change)));
    let released = changes.filter_map(|(execution, change)| match change {
        CommandChange::Release { id } => Some((execution, id.get())),
        CommandChange::Insert(_) | CommandChange::Move { .. } => None,
    });
    columns!(query, released, |released| released.0, released.1)
}
