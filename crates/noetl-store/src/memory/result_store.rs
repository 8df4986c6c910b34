//! [`ResultStore`] of the in-memory store.

use std::collections::btree_map::Entry;

use async_trait::async_trait;
use noetl_model::{ExecutionId, ResultId, Tenant, Value};

use super::MemoryStore;
use super::auxiliary::{has_expired, purge};
use crate::{NewResult, ResultStore, ResultSummary, StoreError};

#[async_trait]
impl ResultStore for MemoryStore {
    async fn put_result(&self, tenant: &Tenant, new: NewResult) -> Result<bool, StoreError> {
        match self.state().kept.results.entry(new.summary.id) {
            Entry::Occupied(_) => Ok(false),
            Entry::Vacant(place) => {
                place.insert((tenant.clone(), new));
                Ok(true)
            }
        }
    }

    async fn result_data(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        name: &str,
        id: ResultId,
    ) -> Result<Option<Value>, StoreError> {
        let now = self.clock.now();
        let state = self.state();
        let found = state.kept.results.get(&id).filter(|(owner, result)| {
            let summary = &result.summary;
            owner == tenant
                && summary.execution == execution
                && summary.name == name
                && !has_expired(summary.expires_at, now)
        });
        Ok(found.map(|(_, result)| result.data.clone()))
    }

    async fn results(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        after: ResultId,
        limit: usize,
    ) -> Result<Vec<ResultSummary>, StoreError> {
        let now = self.clock.now();
        let state = self.state();
        let mine = state.kept.results.values().filter(|(owner, _)| owner == tenant);
        let live = mine.map(|(_, result)| &result.summary).filter(|summary| {
            summary.execution == execution
                && summary.id > after
                && !has_expired(summary.expires_at, now)
        });
        Ok(live.take(limit).cloned().collect())
    }

    async fn delete_results(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        limit: usize,
    ) -> Result<usize, StoreError> {
        let mut state = self.state();
        let all = state.kept.results.iter();
        let mine =
            all.filter(|(_, (owner, new))| owner == tenant && new.summary.execution == execution);
        let gone: Vec<ResultId> = mine.map(|(id, _)| *id).take(limit).collect();
        for id in &gone {
            state.kept.results.remove(id);
        }
        Ok(gone.len())
    }

    async fn purge_results(&self, limit: usize) -> Result<usize, StoreError> {
        let now = self.clock.now();
        Ok(purge(&mut self.state().kept.results, limit, |(_, result)| {
            result.summary.expires_at.filter(|at| has_expired(Some(*at), now))
        }))
    }
}
