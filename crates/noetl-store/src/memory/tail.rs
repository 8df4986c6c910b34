//! [`LogTail`] of the in-memory store.

use std::collections::BTreeMap;

use async_trait::async_trait;
use noetl_model::{ExecutionId, Seq};

use super::MemoryStore;
use super::state::{Execution, MemoryState};
use crate::StoreError;
use crate::tail::{Lane, LogTail, PAGE_BYTES, TailRow};

/// Location of the row at every position. Entries of purged rows remain and lead nowhere.
#[derive(Debug, Default)]
pub(super) struct Positions {
    rows: BTreeMap<i64, (ExecutionId, Seq)>,
    newest: i64,
}

impl Positions {
    pub(super) fn give(&mut self, execution: ExecutionId, seq: Seq) {
        self.newest += 1;
        self.rows.insert(self.newest, (execution, seq));
    }
}

impl MemoryState {
    fn tail_row(&self, position: i64, execution: ExecutionId, seq: Seq) -> Option<TailRow> {
        let known = self.executions.get(&execution);
        let of = known.map(|of: &Execution| (&of.tenant, of.row.catalog));
        let (tenant, catalog) = of.or_else(|| self.subscriptions.owner(execution))?;
        let log = self.log(execution);
        let place = log.iter().position(|row| row.seq == seq)?;
        let previous = place.checked_sub(1).and_then(|before| log.get(before));
        Some(TailRow {
            position,
            tenant: tenant.clone(),
            catalog: Some(catalog),
            previous: previous.map(|row| row.event_id),
            row: log[place].clone(),
        })
    }
}

/// Returns the number of bytes of a row that count toward the size of a page.
fn size(found: &TailRow) -> usize {
    let texts = [&found.row.context, &found.row.result, &found.row.meta];
    texts.iter().map(|text| text.as_ref().map_or(0, String::len)).sum()
}

#[async_trait]
impl LogTail for MemoryStore {
    async fn lanes(&self) -> Result<Vec<Lane>, StoreError> {
        Ok(vec![Lane { number: 0, newest: self.state().positions.newest }])
    }

    async fn tail(&self, lane: u16, after: i64, limit: usize) -> Result<Vec<TailRow>, StoreError> {
        let state = self.state();
        let mut page = Vec::new();
        let mut bytes = 0;
        let rest = state.positions.rows.range(after.saturating_add(1)..).filter(|_| lane == 0);
        for (&position, &(execution, seq)) in rest {
            if page.len() >= limit || bytes >= PAGE_BYTES {
                break;
            }
            if let Some(found) = state.tail_row(position, execution, seq) {
                bytes += size(&found);
                page.push(found);
            }
        }
        Ok(page)
    }

    async fn tail_adopted(&self, _after: i64, _limit: usize) -> Result<Vec<TailRow>, StoreError> {
        Ok(Vec::new())
    }
}
