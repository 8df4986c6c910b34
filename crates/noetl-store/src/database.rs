//! Operator access to the database itself.

use async_trait::async_trait;
use noetl_model::{Map, Value};

use crate::StoreError;

/// Maximum number of rows a statement may return. More are an error, not a truncated result.
pub const ROWS_MAX: usize = 10_000;

/// A statement of an operator.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sql {
    pub text: String,
    /// Parameters `$1`, `$2`, and so on: numbers, Booleans, and text; lists and maps as JSON text.
    pub parameters: Vec<Value>,
    pub schema: Option<String>,
}

/// Reason that a statement failed.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// This kind of store does not run statements of operators.
    #[error("this kind of store does not run SQL statements")]
    Unsupported,
    /// The schema is not a plain name.
    #[error("'{0}' is not a valid schema name: write at most 63 letters, digits, and underscores")]
    Schema(String),
    /// The database rejected the statement.
    #[error("{0}")]
    Refused(String),
    /// The result has more than [`ROWS_MAX`] rows.
    #[error("the answer has more than {ROWS_MAX} rows; ask for fewer with 'limit'")]
    TooLarge,
    #[error("store is unavailable")]
    Store(#[source] StoreError),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connections {
    pub max: u32,
    pub open: u32,
    /// Number of open connections that are idle.
    pub idle: u32,
}

/// The database below a store. A store without a database reports that an operation is unsupported.
#[async_trait]
pub trait Database: Send + Sync {
    /// Runs a statement on a separate connection, with a timeout. A statement that fails has no
    /// effect.
    async fn run_sql(&self, _sql: &Sql) -> Result<Vec<Map>, SqlError> {
        Err(SqlError::Unsupported)
    }

    /// Returns the names of the tables and views, in byte order.
    async fn table_names(&self) -> Result<Vec<String>, StoreError>;

    /// Returns the connection counts, or `None` if the store has no connections.
    fn connections(&self) -> Option<Connections> {
        None
    }
}

/// Returns `true` if a text can be used as a schema name without quotes.
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
