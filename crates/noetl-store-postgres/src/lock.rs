//! Locks one execution for one caller: a row lock that lasts until the transaction ends.

use async_trait::async_trait;
use noetl_model::{Event, ExecutionId, Seq};
use noetl_store::{Append, Committed, LockedLog, StoreError};
use sqlx::{Postgres, Transaction};

use crate::append_mode::AppendMode;
use crate::arrays::{self, EncodedAppend, RejectedChain, bounded, rows, stored_seq};
use crate::error::{StatementOutcome, fate, store_error, write_error};
use crate::event_rows::{events, log_rows};
use crate::outbox_rows::OutboxWriter;

const ACTION: &str = "append to the event log";

pub(crate) struct LockedExecution {
    transaction: Transaction<'static, Postgres>,
    execution: ExecutionId,
    how: AppendMode,
}

impl LockedExecution {
    /// Locks the row of the execution, after waiting for the transaction that has locked it. Locks
    /// nothing if the execution does not exist.
    pub(crate) async fn take(
        mut transaction: Transaction<'static, Postgres>,
        execution: ExecutionId,
        how: AppendMode,
    ) -> Result<Self, StoreError> {
        let sql = "select 1 from noetl.execution where execution_id = $1 for no key update";
        let query = sqlx::query(sql).persistent(!how.speaker.is_pooled);
        let locked = query.bind(execution.get()).execute(&mut *transaction).await;
        locked.map_err(|error| store_error("hold an execution", error))?;
        Ok(Self { transaction, execution, how })
    }

    async fn append(&mut self, item: &EncodedAppend) -> Result<Vec<RejectedChain>, sqlx::Error> {
        let chains = [vec![item]];
        let outgoing = match self.how.has_outbox {
            true => {
                OutboxWriter::default().outgoing(&mut self.transaction, &chains, &[vec![0]]).await?
            }
            false => Vec::new(),
        };
        arrays::append(&mut self.transaction, &self.how.speaker, &chains, &outgoing).await
    }
}

#[async_trait]
impl LockedLog for LockedExecution {
    async fn read(&mut self, after: Seq, limit: usize) -> Result<Vec<Event>, StoreError> {
        let sql = include_str!("../queries/event_read.sql");
        // Plan the query each time: a plan cached here must not be used for reads with other
        // planner settings.
        let query = sqlx::query(sql).persistent(false);
        let query = query.bind(self.execution.get()).bind(bounded(stored_seq(after)));
        let query = query.bind(bounded(rows(limit)));
        let failed = |error| store_error("read the event log", error);
        let found = query.fetch_all(&mut *self.transaction).await.map_err(failed)?;
        let read = found.iter().map(log_rows).collect::<Result<_, _>>().map_err(failed)?;
        events(read, after, limit).map_err(failed)
    }

    async fn commit(mut self: Box<Self>, append: Append) -> Result<Committed, StoreError> {
        let item = self.how.encode(append)?;
        let not_kept = self.append(&item).await.map_err(|error| write_error(ACTION, error))?;
        let outcome = not_kept.first().map_or(Committed::Appended, RejectedChain::outcome);
        match self.transaction.commit().await {
            Ok(()) => Ok(outcome),
            Err(error) if fate(&error) == StatementOutcome::Full => Err(store_error(ACTION, error)),
            Err(error) => Err(StoreError::Unknown(error.into())),
        }
    }
}
