//! Lines of the frail store.

use async_trait::async_trait;
use noetl_model::{CommandId, ExecutionId};
use noetl_store::{LogGap, LogLine, LogQuery, Logs, NewLine, StoreError};

use super::FrailStore;

#[async_trait]
impl Logs for FrailStore {
    async fn append_lines(
        &self,
        execution: ExecutionId,
        lines: Vec<NewLine>,
    ) -> Result<Option<u64>, StoreError> {
        self.answer()?;
        self.inner.append_lines(execution, lines).await
    }

    async fn lines(
        &self,
        execution: ExecutionId,
        query: LogQuery,
    ) -> Result<Vec<LogLine>, StoreError> {
        self.answer()?;
        self.inner.lines(execution, query).await
    }

    async fn gaps(
        &self,
        execution: ExecutionId,
        command: Option<CommandId>,
    ) -> Result<Vec<LogGap>, StoreError> {
        self.answer()?;
        self.inner.gaps(execution, command).await
    }
}
