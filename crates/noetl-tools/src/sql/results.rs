//! Collects the rows of a step's statements within its limits, and builds the result.

use noetl_model::{Failure, FailureKind, Map, Value};
use serde_json::json;

use super::cell::SqlCell;
use crate::OutputLimits;

/// Results of the statements so far.
///
/// `rows`, `columns`, `row_count`, and `affected_rows` are those of the last statement that
/// returned rows, or of the last statement if none did. `command_<i>` contains each result by its
/// index.
#[derive(Debug)]
pub(crate) struct StatementResults {
    rows_max: usize,
    bytes_max: usize,
    rows: usize,
    bytes: usize,
    results: Vec<StatementResult>,
}

#[derive(Debug)]
struct StatementResult {
    /// Column names. `None` if the statement returns no rows.
    columns: Option<Vec<String>>,
    rows: Vec<Value>,
    affected: u64,
}

impl StatementResults {
    pub(crate) fn new(limits: &OutputLimits) -> Self {
        Self {
            rows_max: limits.sql_rows,
            bytes_max: limits.sql_result,
            rows: 0,
            bytes: 0,
            results: Vec::new(),
        }
    }

    /// Returns the index of the next statement, from 0.
    pub(crate) fn index(&self) -> usize {
        self.results.len()
    }

    /// Starts the result of the next statement.
    pub(crate) fn begin(&mut self, columns: Option<Vec<String>>) {
        self.results.push(StatementResult { columns, rows: Vec::new(), affected: 0 });
    }

    /// Adds a row to the current statement. Fails if the step exceeds its limits.
    pub(crate) fn row(&mut self, cells: Vec<SqlCell>) -> Result<(), Failure> {
        let Some(outcome) = self.results.last_mut() else { return Ok(()) };
        let columns = outcome.columns.as_deref().unwrap_or_default();
        let mut row = Map::with_capacity(columns.len());
        for (name, cell) in columns.iter().zip(cells) {
            let value = cell.into_value();
            self.bytes = self.bytes.saturating_add(name.len() + 4 + size_of(&value));
            row.insert(name.clone(), value);
        }
        self.rows += 1;
        outcome.rows.push(Value::Object(row));
        let advice = "ask for fewer with `limit`, or move them with `transfer`";
        if self.rows > self.rows_max {
            let max = self.rows_max;
            return Err(Failure::new(
                FailureKind::OutputLimit,
                format!("the step returns more than {max} rows (limit `sql_rows`); {advice}"),
            ));
        }
        if self.bytes > self.bytes_max {
            let max = self.bytes_max;
            return Err(Failure::new(
                FailureKind::OutputLimit,
                format!("the step returns more than {max} bytes (limit `sql_result`); {advice}"),
            ));
        }
        Ok(())
    }

    pub(crate) fn end(&mut self, affected: u64) {
        if let Some(outcome) = self.results.last_mut() {
            outcome.affected = affected;
        }
    }

    pub(crate) fn into_value(self) -> Value {
        let last_with_rows = self.results.iter().rposition(|outcome| outcome.columns.is_some());
        let shown = last_with_rows.unwrap_or(self.results.len().saturating_sub(1));
        let results: Vec<Map> = self.results.into_iter().map(StatementResult::into_map).collect();
        let mut answer = results.get(shown).cloned().unwrap_or_default();
        for (place, result) in results.into_iter().enumerate() {
            answer.insert(format!("command_{place}"), Value::Object(result));
        }
        Value::Object(answer)
    }
}

impl StatementResult {
    fn into_map(self) -> Map {
        let mut map = Map::new();
        if let Some(columns) = self.columns {
            map.insert("columns".to_owned(), json!(columns));
            map.insert("row_count".to_owned(), self.rows.len().into());
            map.insert("rows".to_owned(), Value::Array(self.rows));
        }
        map.insert("affected_rows".to_owned(), self.affected.into());
        map
    }
}

/// Returns unique column names: a second `id` becomes `id_2`, because a row is a map and would lose
/// one of the two.
pub(crate) fn column_names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut unique: Vec<String> = Vec::new();
    for name in names {
        let mut candidate = name.to_owned();
        let mut number = 2;
        while unique.contains(&candidate) {
            candidate = format!("{name}_{number}");
            number += 1;
        }
        unique.push(candidate);
    }
    unique
}

/// Estimates the size of a value as JSON, in bytes.
pub(crate) fn size_of(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size_of(item) + 1).sum::<usize>() + 2,
        Value::Object(map) => {
            map.iter().map(|(key, item)| key.len() + 4 + size_of(item)).sum::<usize>() + 2
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(rows_max: usize, bytes_max: usize) -> StatementResults {
        let limits =
            OutputLimits { sql_rows: rows_max, sql_result: bytes_max, ..OutputLimits::default() };
        StatementResults::new(&limits)
    }

    #[test]
    fn the_result_has_the_rows_of_the_last_statement_with_rows() {
        let mut answer = answer(10, 1000);
        answer.begin(None);
        answer.end(2);
        answer.begin(Some(vec!["a".into()]));
        answer.row(vec![1.into()]).unwrap();
        answer.end(0);
        answer.begin(None);
        answer.end(3);
        let rows = json!({
            "columns": ["a"], "rows": [{"a": 1}], "row_count": 1, "affected_rows": 0,
        });
        let mut expected = rows.clone();
        expected["command_0"] = json!({"affected_rows": 2});
        expected["command_1"] = rows;
        expected["command_2"] = json!({"affected_rows": 3});
        assert_eq!(answer.into_value(), expected);
    }

    #[test]
    fn errors_name_the_exceeded_row_or_byte_limit() {
        let mut few = answer(1, 1000);
        few.begin(Some(vec!["a".into()]));
        few.row(vec![1.into()]).unwrap();
        let failure = few.row(vec![2.into()]).unwrap_err();
        assert_eq!(failure.kind, FailureKind::OutputLimit);
        assert!(failure.message.contains("`sql_rows`"), "{failure}");

        let mut small = answer(10, 100);
        small.begin(Some(vec!["a".into()]));
        let failure = small.row(vec!["x".repeat(200).into()]).unwrap_err();
        assert!(failure.message.contains("`sql_result`"), "{failure}");
    }

    #[test]
    fn columns_with_the_same_name_are_distinguished() {
        let names = column_names(["id", "id_2", "id", "id"].into_iter());
        assert_eq!(names, ["id", "id_2", "id_3", "id_4"]);
    }
}
