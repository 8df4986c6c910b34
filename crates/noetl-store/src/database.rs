//! What operators ask of the database itself.

use async_trait::async_trait;
use noetl_model::{Map, Value};

use crate::StoreError;

/// The most rows a statement may return: more are an error, not a short answer.
pub const ROWS_MAX: usize = 10_000;

/// A statement of an operator.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sql {
    pub text: String,
    /// What stands for `$1`, `$2`, …: numbers, truth values, text; lists and maps
    /// as JSON text.
    pub parameters: Vec<Value>,
    /// The schema that names without one belong to.
    pub schema: Option<String>,
}

/// Why a statement was not run.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// This kind of store runs no statements of others.
    #[error("this store runs no SQL of its operators")]
    Unsupported,
    /// The schema is no plain name.
    #[error("'{0}' is no name of a schema: write letters, digits and _, up to 63 of them")]
    Schema(String),
    /// The database refuses it.
    #[error("{0}")]
    Refused(String),
    /// It has too large an answer.
    #[error("the answer has more than {ROWS_MAX} rows; ask for fewer with 'limit'")]
    TooLarge,
    /// The database did not answer.
    #[error("the store did not answer")]
    Store(#[source] StoreError),
}

/// Connections to a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connections {
    /// How many there may be.
    pub max: u32,
    /// How many there are.
    pub open: u32,
    /// How many of them nobody uses.
    pub idle: u32,
}

/// The database below a store. What a store has none of, it says.
#[async_trait]
pub trait Database: Send + Sync {
    /// Runs a statement on a connection of its own, for a limited time. Nothing of one that fails
    /// stays.
    async fn run_sql(&self, _sql: &Sql) -> Result<Vec<Map>, SqlError> {
        Err(SqlError::Unsupported)
    }

    /// The names of its tables, in byte order.
    async fn table_names(&self) -> Result<Vec<String>, StoreError>;

    /// How many connections it has; `None` when there are none to count.
    fn connections(&self) -> Option<Connections> {
        None
    }
}

/// Whether a text can stand for a schema without quotes around it.
pub fn is_plain_name(text: &str) -> bool {
    let mut letters = text.chars();
    let first = letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first && text.len() <= 63 && letters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_name_needs_no_quotes() {
        for plain in ["noetl", "_a", "A1_b"] {
            assert!(is_plain_name(plain), "{plain}");
        }
        let long = "a".repeat(64);
        for other in ["", "1a", "a-b", "a\"b", "a;b", "a b", "ä", &long] {
            assert!(!is_plain_name(other), "{other}");
        }
    }
}
