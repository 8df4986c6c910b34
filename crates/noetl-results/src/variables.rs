//! Variables of executions that workers and people read and write outside the event log.

use std::sync::Arc;

use noetl_model::placeholder::defuse;
use noetl_model::{DEPTH_MAX, ExecutionId, Tenant, is_deeper_than};
use noetl_store::{ExecutionDataStore, NewVariable, StoreError, Variable};
use noetl_work::{NAME_MAX, Redaction};

/// Errors of storing auxiliary data of an execution.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The execution does not exist.
    #[error("Execution not found: {0}")]
    NoExecution(ExecutionId),
    /// The name is empty or too long.
    #[error("a {what} needs a name of 1 to {NAME_MAX} characters")]
    Name { what: &'static str },
    /// The value is nested too deeply.
    #[error("'{0}' nests more than {DEPTH_MAX} levels deep")]
    TooDeep(String),
    #[error("store is unavailable")]
    Store(#[source] StoreError),
}

/// Checks that a name is valid for auxiliary data.
pub(crate) fn check_name(what: &'static str, name: &str) -> Result<(), SaveError> {
    let is_fine = !name.trim().is_empty() && name.chars().count() <= NAME_MAX;
    if is_fine { Ok(()) } else { Err(SaveError::Name { what }) }
}

/// Reads and writes variables. Cheap to clone.
#[derive(Clone)]
pub struct Variables {
    store: Arc<dyn ExecutionDataStore>,
    redaction: Redaction,
}

impl Variables {
    pub(crate) fn new(store: Arc<dyn ExecutionDataStore>, redaction: Redaction) -> Self {
        Self { store, redaction }
    }

    /// Stores all of these variables or none, with secrets redacted. Returns their number.
    pub async fn put(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        mut new: Vec<NewVariable>,
    ) -> Result<usize, SaveError> {
        for variable in &mut new {
            check_name("variable", &variable.name)?;
            if is_deeper_than(&variable.value, DEPTH_MAX) {
                return Err(SaveError::TooDeep(variable.name.clone()));
            }
            defuse(&mut variable.value);
            self.redaction.value(tenant, &mut variable.value);
        }
        let known = self.store.execution(tenant, execution).await.map_err(SaveError::Store)?;
        if known.is_none() {
            return Err(SaveError::NoExecution(execution));
        }
        let count = new.len();
        if count > 0 {
            let put = self.store.put_variables(tenant, execution, new).await;
            put.map_err(SaveError::Store)?;
        }
        Ok(count)
    }

    /// Returns all variables of an execution, ordered by name.
    pub async fn list(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
    ) -> Result<Vec<Variable>, StoreError> {
        self.store.variables(tenant, execution).await
    }

    /// Returns a variable and increments its read count.
    pub async fn get(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        name: &str,
    ) -> Result<Option<Variable>, StoreError> {
        self.store.read_variable(tenant, execution, name).await
    }

    /// Deletes a variable. Returns whether it existed.
    pub async fn delete(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        name: &str,
    ) -> Result<bool, StoreError> {
        self.store.delete_variable(tenant, execution, name).await
    }

    /// Deletes all variables of an execution. Returns their number.
    pub async fn clear(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
    ) -> Result<usize, StoreError> {
        self.store.delete_variables(tenant, execution).await
    }
}
