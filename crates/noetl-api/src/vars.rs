//! Variables beside an execution.

use noetl_model::{Map, Timestamp, Value};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Id;

/// The body of `POST /api/vars/{execution_id}`: a list, or names and values as they are.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum PutVariables {
    /// With what there is to say of each.
    Listed {
        /// The variables.
        variables: Vec<PutVariable>,
    },
    /// Names and values alone.
    #[schema(value_type = Object)]
    Flat(Map),
}

impl<'de> Deserialize<'de> for PutVariables {
    /// A list under `variables` is the first form, and what is wrong in it is said; everything else
    /// is names and values.
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

/// A variable to keep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PutVariable {
    /// Its name.
    pub var_name: String,
    /// Its value.
    pub var_value: Value,
    /// `user_defined`, `step_result`, `computed` or `iterator_state`.
    #[serde(default = "user_defined")]
    pub var_type: String,
    /// The step it comes from.
    #[serde(default)]
    pub source_step: Option<String>,
}

fn user_defined() -> String {
    "user_defined".to_owned()
}

impl PutVariable {
    /// A variable that somebody set.
    pub fn new(name: String, value: Value) -> Self {
        Self { var_name: name, var_value: value, var_type: user_defined(), source_step: None }
    }
}

/// A variable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VariableView {
    /// Its name.
    pub var_name: String,
    /// What it is.
    pub var_type: String,
    /// Its value.
    pub var_value: Value,
    /// The step it comes from.
    pub source_step: Option<String>,
    /// When it was set.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it was last read by name.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub accessed_at: Option<Timestamp>,
    /// How often it was read by name.
    pub access_count: u64,
}

/// What was set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VariablesSet {
    /// The execution.
    pub execution_id: Id,
    /// How many.
    pub variables_set: usize,
    /// `ok`.
    pub status: String,
}

/// A variable that was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VariableDeleted {
    /// The execution.
    pub execution_id: Id,
    /// Its name.
    pub var_name: String,
    /// `deleted`.
    pub status: String,
}

/// Variables that were removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VariablesDeleted {
    /// The execution.
    pub execution_id: Id,
    /// How many.
    pub variables_deleted: usize,
    /// `ok`.
    pub status: String,
}
