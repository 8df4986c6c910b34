//! Variables of an execution that clients set and read.

use async_trait::async_trait;
use noetl_model::{ExecutionId, Tenant, Timestamp, Value};

use crate::StoreError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableKind {
    /// Set by a client.
    UserDefined,
    /// Result of a step.
    StepResult,
    Computed,
    /// Progress of a loop.
    IteratorState,
}

impl VariableKind {
    pub const ALL: [Self; 4] =
        [Self::UserDefined, Self::StepResult, Self::Computed, Self::IteratorState];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UserDefined => "user_defined",
            Self::StepResult => "step_result",
            Self::Computed => "computed",
            Self::IteratorState => "iterator_state",
        }
    }

    /// Returns the kind with this stored text.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewVariable {
    /// Name, unique within the execution.
    pub name: String,
    pub kind: VariableKind,
    pub value: Value,
    /// Step that produced the variable.
    pub source_step: Option<String>,
    /// Intended audience, as text chosen by the caller; the store does not interpret it.
    pub scope: Option<String>,
    /// Expiration time; never expires if `None`.
    pub expires_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    pub kept: NewVariable,
    pub created_at: Timestamp,
    /// Time of the last read by name.
    pub accessed_at: Option<Timestamp>,
    /// Number of reads by name since the put.
    pub access_count: u64,
}

/// Variables of executions. Each call is atomic. Other tenants' variables are invisible, and so is
/// a variable from its expiration time on, by the store's clock, whether it was purged or not.
#[async_trait]
pub trait VariableStore: Send + Sync {
    /// Stores all of these variables or none, replacing those with the same names, and resets their
    /// read counts. Of several with one name, the last is stored.
    async fn put_variables(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        new: Vec<NewVariable>,
    ) -> Result<(), StoreError>;

    /// Returns a variable: counts the read and returns the variable after it.
    async fn read_variable(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        name: &str,
    ) -> Result<Option<Variable>, StoreError>;

    /// Returns all variables of an execution in byte order of their names, without counting reads.
    async fn variables(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
    ) -> Result<Vec<Variable>, StoreError>;

    /// Removes a variable. Returns `true` if it existed.
    async fn delete_variable(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        name: &str,
    ) -> Result<bool, StoreError>;

    /// Removes all variables of an execution and returns their number.
    async fn delete_variables(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
    ) -> Result<usize, StoreError>;

    /// Removes up to `limit` expired variables of all tenants and returns their number. Fewer than
    /// `limit` means that none are left.
    async fn purge_variables(&self, limit: usize) -> Result<usize, StoreError>;
}
