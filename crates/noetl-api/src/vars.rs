//! Variables stored beside an execution, outside its event log.

use noetl_model::{Map, Timestamp, Value};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Id;

/// Body of `POST /api/vars/{execution_id}`: `{"variables": […]}`, or an object of names and values.
/// All variables are set, or none.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum PutVariables {
    /// List of variables with types and sources.
    Listed {
        /// Variables to set, all or none.
        variables: Vec<PutVariable>,
    },
    /// Object that maps names to values. All variables have the type `user_defined`.
    #[schema(value_type = Object)]
    Flat(Map),
}

impl<'de> Deserialize<'de> for PutVariables {
    /// Parses an object with the single key `variables` and a list value as
    /// [`PutVariables::Listed`], with errors that name the key. Parses any other object as
    /// [`PutVariables::Flat`].
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = Map::deserialize(deserializer)?;
        match map.get("variables") {
            Some(list @ Value::Array(_)) if map.len() == 1 => {
                let variables = Vec::deserialize(list)
                    .map_err(|error| de::Error::custom(format_args!("variables: {error}")))?;
                Ok(Self::Listed { variables })
            }
            _ => Ok(Self::Flat(map)),
        }
    }
}

/// A variable to set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PutVariable {
    /// Name of the variable, unique in the execution.
    pub var_name: String,
    /// Value of the variable, as JSON.
    pub var_value: Value,
    /// Type: `user_defined`, `step_result`, `computed`, or `iterator_state`. Default:
    /// `user_defined`.
    #[serde(default = "user_defined")]
    pub var_type: String,
    /// Step that produced the value.
    #[serde(default)]
    pub source_step: Option<String>,
}

fn user_defined() -> String {
    "user_defined".to_owned()
}

impl PutVariable {
    /// Creates a variable of type `user_defined` without a source step.
    pub fn new(name: String, value: Value) -> Self {
        Self { var_name: name, var_value: value, var_type: user_defined(), source_step: None }
    }
}

/// A variable of an execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VariableView {
    /// Name of the variable, unique in the execution.
    pub var_name: String,
    /// Type: `user_defined`, `step_result`, `computed`, or `iterator_state`.
    pub var_type: String,
    /// Value of the variable, as JSON.
    pub var_value: Value,
    /// Step that produced the value.
    pub source_step: Option<String>,
    /// Time at which the variable was set.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Time at which the variable was last read by name. `null` if it never was.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub accessed_at: Option<Timestamp>,
    /// Number of times the variable was read by name. Lists don't count.
    pub access_count: u64,
}

/// Response of `POST /api/vars/{execution_id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VariablesSet {
    /// ID of the execution.
    pub execution_id: Id,
    /// Number of variables set.
    pub variables_set: usize,
    /// Always `ok`; failures are HTTP errors.
    pub status: String,
}

/// Response of `DELETE /api/vars/{execution_id}/{name}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VariableDeleted {
    /// ID of the execution.
    pub execution_id: Id,
    /// Name of the deleted variable.
    pub var_name: String,
    /// Always `deleted`. An unknown variable is a 404.
    pub status: String,
}

/// Response of `DELETE /api/vars/{execution_id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VariablesDeleted {
    /// ID of the execution.
    pub execution_id: Id,
    /// Number of deleted variables.
    pub variables_deleted: usize,
    /// Always `ok`; failures are HTTP errors.
    pub status: String,
}
