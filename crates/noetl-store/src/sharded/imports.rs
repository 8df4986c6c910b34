//! Rows from elsewhere, in the shards of their executions.

use std::collections::HashSet;

use async_trait::async_trait;
use futures::future::join_all;
use noetl_model::ExecutionId;

use super::Sharded;
use crate::{Import, ImportOutcome, Imports, StoreError};

#[async_trait]
impl Imports for Sharded {
    /// All shards at once. When one fails, what the others kept stays: the error is then
    /// [`StoreError::Unknown`], and a repeat finds the rest.
    async fn import(&self, rows: Vec<Import>) -> Result<Vec<ImportOutcome>, StoreError> {
        let mut outcomes = vec![None; rows.len()];
        let mut portions = vec![(Vec::new(), Vec::new()); self.shards.len()];
        for (place, row) in rows.into_iter().enumerate() {
            let (places, rows) = &mut portions[self.number_of(row.execution)];
            places.push(place);
            rows.push(row);
        }
        let asked = self.shards.iter().zip(portions).filter(|(_, (places, _))| !places.is_empty());
        let answers = asked
            .map(async |(shard, (places, rows))| (shard, places, shard.store.import(rows).await));
        let mut failed = None;
        for (shard, places, answer) in join_all(answers).await {
            match answer {
                Ok(answer) => {
                    for (place, outcome) in places.into_iter().zip(answer) {
                        outcomes[place] = Some(outcome);
                    }
                }
                Err(error) => failed = failed.or(Some((shard, error))),
            }
        }
        let is_kept = outcomes.contains(&Some(ImportOutcome::Kept));
        match failed {
            None => Ok(outcomes.into_iter().flatten().collect()),
            Some((shard, error)) if is_kept => {
                Err(StoreError::Unknown(error.into()).on_shard(&shard.name))
            }
            Some((shard, error)) => Err(error.on_shard(&shard.name)),
        }
    }

    async fn imported(
        &self,
        executions: &[ExecutionId],
    ) -> Result<HashSet<ExecutionId>, StoreError> {
        let mut portions = vec![Vec::new(); self.shards.len()];
        for &execution in executions {
            portions[self.number_of(execution)].push(execution);
        }
        let asked = self.shards.iter().zip(&portions).filter(|(_, ids)| !ids.is_empty());
        let answers = asked.map(async |(shard, ids)| shard.named(shard.store.imported(ids).await));
        let answers = join_all(answers).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(answers.into_iter().flatten().collect())
    }
}
