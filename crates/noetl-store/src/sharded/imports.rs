//! Imports, in the shards of their executions.

use std::collections::HashSet;

use async_trait::async_trait;
use futures::future::join_all;
use noetl_model::ExecutionId;

use super::{NamedStore, Sharded};
use crate::{Import, ImportOutcome, ImportStore, StoreError};

/// Outcomes of the rows that one shard processed, by index in the batch.
struct ShardOutcomes {
    outcomes: Vec<(usize, ImportOutcome)>,
    failed: Option<StoreError>,
}

#[async_trait]
impl ImportStore for Sharded {
    /// Imports in all shards concurrently. If one fails, the rows imported in others stay: the
    /// error is then [`StoreError::Unknown`], and a retry completes the rest.
    async fn import(&self, rows: Vec<Import>) -> Result<Vec<ImportOutcome>, StoreError> {
        let ids: HashSet<ExecutionId> = rows.iter().map(|row| row.execution).collect();
        let ids: Vec<ExecutionId> = ids.into_iter().collect();
        // Subscriptions are in the cluster store, where no shard sees them.
        let cluster = &self.cluster;
        let taken = cluster.named(cluster.store.logs_of_subscriptions(&ids).await)?;
        let mut outcomes = vec![None; rows.len()];
        let mut portions = vec![Vec::new(); self.shards.len()];
        for (place, row) in rows.into_iter().enumerate() {
            if taken.contains(&row.execution) {
                outcomes[place] = Some(ImportOutcome::StartedHere);
            } else {
                portions[self.number_of(row.execution)].push((place, row));
            }
        }
        let asked = self.shards.iter().zip(portions).filter(|(_, rows)| !rows.is_empty());
        let answers = asked.map(|(shard, rows)| import_in(shard, rows));
        let mut failed = None;
        for answer in join_all(answers).await {
            for (place, outcome) in answer.outcomes {
                outcomes[place] = Some(outcome);
            }
            failed = failed.or(answer.failed);
        }
        let is_kept = outcomes.contains(&Some(ImportOutcome::Kept));
        match failed {
            None => Ok(outcomes.into_iter().flatten().collect()),
            Some(StoreError::Shard { name, source }) if is_kept => {
                Err(StoreError::Unknown(source).on_shard(&name))
            }
            Some(error) => Err(error),
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

/// Imports rows in one shard. Bisects to find rows that the shard rejects: rows imported in other
/// shards cannot be undone, so the whole batch cannot be rejected.
async fn import_in(shard: &NamedStore, rows: Vec<(usize, Import)>) -> ShardOutcomes {
    let mut answer = ShardOutcomes { outcomes: Vec::with_capacity(rows.len()), failed: None };
    let mut waiting = vec![rows];
    while let Some(mut portion) = waiting.pop() {
        let rows = portion.iter().map(|(_, row)| row.clone()).collect();
        match shard.named(shard.store.import(rows).await) {
            Ok(outcomes) => {
                let places = portion.into_iter().map(|(place, _)| place);
                answer.outcomes.extend(places.zip(outcomes));
            }
            Err(error) if !matches!(error.failure(), StoreError::Refused(_)) => {
                answer.failed = Some(error);
                break;
            }
            Err(_) if portion.len() == 1 => {
                answer.outcomes.push((portion[0].0, ImportOutcome::Refused));
            }
            Err(_) => {
                let second = portion.split_off(portion.len() / 2);
                waiting.extend([second, portion]);
            }
        }
    }
    answer
}
