//! Variables of executions that workers and people set and read beside the log.

use std::sync::Arc;

use noetl_model::placeholder::defuse;
use noetl_model::{DEPTH_MAX, ExecutionId, Tenant, is_deeper_than};
use noetl_store::{NewVariable, Store, StoreError, Variable};

use crate::redaction::Redaction;

/// Why nothing was kept beside an execution.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// There is no such execution.
    #[error("Execution not found: {0}")]
    NoExecution(ExecutionId),
    /// It has no name, or one that is too long.
    #[error("a {what} needs a name of 1 to {NAME_MAX} characters")]
    Name { what: &'static str },
    /// It nests too deep.
    #[error("'{0}' nests more than {DEPTH_MAX} levels deep")]
    TooDeep(String),
    /// The store did not answer.
    #[error("the store did not answer")]
    Store(#[source] StoreError),
}

/// The longest name of something kept beside an execution.
pub(crate) const NAME_MAX: usize = 500;

/// Whether something can be kept under this name.
pub(crate) fn check_name(what: &'static str, name: &str) -> Result<(), KeepError> {
    let is_fine = !name.trim().is_empty() && name.chars().count() <= NAME_MAX;
    if is_fine { Ok(()) } else { Err(KeepError::Name { what }) }
}

/// The service of variables. Cheap to clone.
#[derive(Clone)]
pub struct Variables {
    store: Arc<dyn Store>,
    redaction: Redaction,
}

impl Variables {
    pub(crate) fn new(store: Arc<dyn Store>, redaction: Redaction) -> Self {
        Self { store, redaction }
    }

    /// Keeps all of these or none, without the secrets in them.
    pub async fn put(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        mut new: Vec<NewVariable>,
    ) -> Result<usize, KeepError> {
        for variable in &mut new {
            check_name("variable", &variable.name)?;
            if is_deeper_than(&variable.value, DEPTH_MAX) {
                return Err(KeepError::TooDeep(variable.name.clone()));
            }
            defuse(&mut variable.value);
            self.redaction.value(tenant, &mut variable.value);
        }
        let known = self.store.execution(tenant, execution).await.map_err(KeepError::Store)?;
        if known.is_none() {
            return Err(KeepError::NoExecution(execution));
        }
        let count = new.len();
        if count > 0 {
            let put = self.store.put_variables(tenant, execution, new).await;
            put.map_err(KeepError::Store)?;
        }
        Ok(count)
    }

    /// All variables of an execution, by name.
    pub async fn list(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
    ) -> Result<Vec<Variable>, StoreError> {
        self.store.variables(tenant, execution).await
    }

    /// One variable; the reading is counted.
    pub async fn get(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        name: &str,
    ) -> Result<Option<Variable>, StoreError> {
        self.store.read_variable(tenant, execution, name).await
    }

    /// Removes one variable. Whether there was one.
    pub async fn delete(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        name: &str,
    ) -> Result<bool, StoreError> {
        self.store.delete_variable(tenant, execution, name).await
    }

    /// Removes all variables of an execution, and says how many there were.
    pub async fn clear(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
    ) -> Result<usize, StoreError> {
        self.store.delete_variables(tenant, execution).await
    }
}
