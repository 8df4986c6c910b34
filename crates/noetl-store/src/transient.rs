//! Variables of an execution that outsiders set and read.

use async_trait::async_trait;
use noetl_model::{ExecutionId, Tenant, Timestamp, Value};

use crate::StoreError;

/// What a variable is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableKind {
    /// Somebody set it.
    UserDefined,
    /// It is a step's result.
    StepResult,
    Computed,
    /// It says how far a loop is.
    IteratorState,
}

impl VariableKind {
    /// Every kind.
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

    /// From its stored text.
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A variable to keep.
#[derive(Debug, Clone, PartialEq)]
pub struct NewVariable {
    /// Its name, unique for its execution.
    pub name: String,
    pub kind: VariableKind,
    pub value: Value,
    /// The step it comes from.
    pub source_step: Option<String>,
    /// Who it is meant for.
    pub scope: Option<String>,
    /// When it ends to exist; never when absent.
    pub expires_at: Option<Timestamp>,
}

/// A variable as kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    pub kept: NewVariable,
    /// When it was put.
    pub created_at: Timestamp,
    /// When it was last read by name.
    pub accessed_at: Option<Timestamp>,
    /// How often it was read by name since it was put.
    pub access_count: u64,
}

/// Variables of executions. Each call is atomic. Another tenant's do not exist, and neither does
/// one from the instant it expires on, by the store's clock, whether it was purged or not.
#[async_trait]
pub trait Transient: Send + Sync {
    /// Keeps all of these or none, each in the place of any with its name. Reads count from zero.
    /// Of several with one name the last stays.
    async fn put_variables(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        new: Vec<NewVariable>,
    ) -> Result<(), StoreError>;

    /// One variable: counts the read and answers as it is after it.
    async fn read_variable(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        name: &str,
    ) -> Result<Option<Variable>, StoreError>;

    /// All variables of an execution, ordered by the bytes of their names; counts nothing.
    async fn variables(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
    ) -> Result<Vec<Variable>, StoreError>;

    /// Removes a variable. Whether there was one.
    async fn delete_variable(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        name: &str,
    ) -> Result<bool, StoreError>;

    /// Removes all variables of an execution and says how many there were.
    async fn delete_variables(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
    ) -> Result<usize, StoreError>;

    /// Removes up to `limit` expired variables of all tenants, and says how many; fewer than
    /// `limit` means that none are left.
    async fn purge_variables(&self, limit: usize) -> Result<usize, StoreError>;
}
