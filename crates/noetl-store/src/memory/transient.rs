//! [`VariableStore`] of the in-memory store.

use async_trait::async_trait;
use noetl_model::{ExecutionId, Tenant};

use super::MemoryStore;
use super::auxiliary::{has_expired, purge};
use crate::{NewVariable, StoreError, Variable, VariableStore};

#[async_trait]
impl VariableStore for MemoryStore {
    async fn put_variables(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        new: Vec<NewVariable>,
    ) -> Result<(), StoreError> {
        let created_at = self.clock.now();
        let mut state = self.state();
        for kept in new {
            let key = (tenant.clone(), execution, kept.name.clone());
            let variable = Variable { kept, created_at, accessed_at: None, access_count: 0 };
            state.kept.variables.insert(key, variable);
        }
        Ok(())
    }

    async fn read_variable(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        name: &str,
    ) -> Result<Option<Variable>, StoreError> {
        let now = self.clock.now();
        let mut state = self.state();
        let key = (tenant.clone(), execution, name.to_owned());
        let variable = state.kept.variables.get_mut(&key);
        let live = variable.filter(|variable| !has_expired(variable.kept.expires_at, now));
        Ok(live.map(|variable| {
            variable.access_count += 1;
            variable.accessed_at = Some(now);
            variable.clone()
        }))
    }

    async fn variables(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
    ) -> Result<Vec<Variable>, StoreError> {
        let now = self.clock.now();
        let state = self.state();
        let all = state.kept.variables.iter();
        let mine = all.filter(|((owner, of, _), _)| owner == tenant && *of == execution);
        let live = mine.filter(|(_, variable)| !has_expired(variable.kept.expires_at, now));
        Ok(live.map(|(_, variable)| variable.clone()).collect())
    }

    async fn delete_variable(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        name: &str,
    ) -> Result<bool, StoreError> {
        let now = self.clock.now();
        let key = (tenant.clone(), execution, name.to_owned());
        let removed = self.state().kept.variables.remove(&key);
        Ok(removed.is_some_and(|variable| !has_expired(variable.kept.expires_at, now)))
    }

    async fn delete_variables(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
    ) -> Result<usize, StoreError> {
        let now = self.clock.now();
        let mut live = 0;
        self.state().kept.variables.retain(|(owner, of, _), variable| {
            let stays = owner != tenant || *of != execution;
            live += usize::from(!stays && !has_expired(variable.kept.expires_at, now));
            stays
        });
        Ok(live)
    }

    async fn purge_variables(&self, limit: usize) -> Result<usize, StoreError> {
        let now = self.clock.now();
        Ok(purge(&mut self.state().kept.variables, limit, |variable| {
            variable.kept.expires_at.filter(|at| has_expired(Some(*at), now))
        }))
    }
}
