//! Columns of a subscription's table, and the SQL that converts a row to a message.

use noetl_model::Map;
use tokio_postgres::Client;

use super::{asked, quoted};
use crate::source::{SourceError, text};

/// A table and its settings, as parts of statements. The table's alias is always `t`.
pub(super) struct Table {
    /// Quoted name of the table.
    pub(super) name: String,
    /// Key column, qualified and quoted; `key_type` is its type.
    pub(super) key: String,
    pub(super) key_type: String,
    /// Select list of a message: the key as text, the body, the attributes, and the headers.
    pub(super) message: String,
    /// Condition from the document, or `true`.
    pub(super) condition: String,
    columns: Vec<Column>,
}

struct Column {
    name: String,
    kind: String,
    is_needed: bool,
    is_unique: bool,
}

const COLUMNS: &str = "select a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull, \
    exists (select 1 from pg_index i where i.indrelid = a.attrelid and i.indisunique \
        and i.indisvalid and i.indpred is null and i.indnkeyatts = 1 and i.indkey[0] = a.attnum) \
    from pg_attribute a where a.attrelid = to_regclass($1)::oid and a.attnum > 0 \
    and not a.attisdropped order by a.attnum";

impl Table {
    /// Reads the table's columns and checks the settings against them.
    pub(super) async fn read(
        client: &Client,
        settings: &Map,
        table: &str,
    ) -> Result<Self, SourceError> {
        let parts: Vec<&str> = table.split('.').collect();
        if parts.len() > 2 || parts.iter().any(|part| part.is_empty()) {
            let message = format!("`table` is the name of a table or schema.table, not '{table}'");
            return Err(SourceError::Settings(message));
        }
        let name = parts.into_iter().map(quoted).collect::<Vec<_>>().join(".");
        let what = format!("table '{table}'");
        let rows = asked(&what, client.query(COLUMNS, &[&name])).await?;
        let columns: Vec<Column> = rows
            .iter()
            .map(|row| Column {
                name: row.get(0),
                kind: row.get(1),
                is_needed: row.get(2),
                is_unique: row.get(3),
            })
            .collect();
        if columns.is_empty() {
            return Err(SourceError::Away(format!("there is no {what}")));
        }
        let mut read = Self {
            name,
            key: String::new(),
            key_type: String::new(),
            message: String::new(),
            condition: "true".to_owned(),
            columns,
        };
        read.read_key(text(settings, "key")?.unwrap_or("id"))?;
        let body = text(settings, "body")?;
        let headers = text(settings, "headers_from")?;
        read.message = read.message(body, headers)?;
        if let Some(condition) = text(settings, "where")? {
            // A line break ends a comment at the end of the condition.
            read.condition = format!("({condition}\n)");
        }
        Ok(read)
    }

    /// Sets the key column. It must be unique and not null, so that an ack affects exactly one row.
    fn read_key(&mut self, name: &str) -> Result<(), SourceError> {
        let column = self.column("key", name)?;
        if !column.is_needed || !column.is_unique {
            let message = format!(
                "`key`: column '{name}' must be the primary key, or unique and not null, so that a \
                 word about one row is about no other"
            );
            return Err(SourceError::Settings(message));
        }
        let (key, kind) = (format!("t.{}", quoted(name)), column.kind.clone());
        (self.key, self.key_type) = (key, kind);
        Ok(())
    }

    fn column(&self, setting: &str, name: &str) -> Result<&Column, SourceError> {
        let matching = self.columns.iter().find(|column| column.name == name);
        matching.ok_or_else(|| {
            let names: Vec<&str> = self.columns.iter().map(|column| &*column.name).collect();
            let message =
                format!("`{setting}`: there is no column '{name}'; it has: {}", names.join(", "));
            SourceError::Settings(message)
        })
    }

    /// Returns the quoted name of a timestamp column.
    pub(super) fn time(&self, setting: &str, name: &str) -> Result<String, SourceError> {
        let column = self.column(setting, name)?;
        if !column.kind.starts_with("timestamp") {
            let kind = &column.kind;
            let message = format!("`{setting}`: column '{name}' is {kind}; it must be timestamptz");
            return Err(SourceError::Settings(message));
        }
        Ok(quoted(name))
    }

    /// Returns the quoted name of the `done` column, the condition that a row is not done, and the
    /// value that marks it done.
    pub(super) fn done(&self, name: &str) -> Result<(String, String, &'static str), SourceError> {
        let column = self.column("done", name)?;
        let quoted = quoted(name);
        if column.kind == "boolean" {
            return Ok((quoted.clone(), format!("t.{quoted} is not true"), "true"));
        }
        let name = self.time("done", name).map_err(|_| {
            let kind = &column.kind;
            let message =
                format!("`done`: column '{name}' is {kind}; it must be timestamptz or boolean");
            SourceError::Settings(message)
        })?;
        Ok((name.clone(), format!("t.{name} is null"), "now()"))
    }

    /// Returns the ORDER BY list.
    pub(super) fn order(&self, settings: &Map) -> Result<String, SourceError> {
        let Some(name) = text(settings, "order_by")? else { return Ok(self.key.clone()) };
        self.column("order_by", name)?;
        Ok(format!("t.{}, {}", quoted(name), self.key))
    }

    fn message(&self, body: Option<&str>, headers: Option<&str>) -> Result<String, SourceError> {
        let key = &self.key;
        let headers = match headers {
            Some(name) => {
                let column = self.column("headers_from", name)?;
                if !matches!(column.kind.as_str(), "json" | "jsonb") {
                    let kind = &column.kind;
                    let message =
                        format!("`headers_from`: column '{name}' is {kind}; it must be jsonb");
                    return Err(SourceError::Settings(message));
                }
                format!("t.{}::text", quoted(name))
            }
            None => "null::text".to_owned(),
        };
        let Some(body) = body else {
            // The row itself is the message.
            let row = "convert_to(to_jsonb(t)::text, 'UTF8')";
            return Ok(format!("{key}::text, {row}, null::text, {headers}"));
        };
        let of_body = self.column("body", body)?;
        let quoted_body = quoted(body);
        let body = match of_body.kind.as_str() {
            "bytea" => format!("t.{quoted_body}"),
            _ => format!("convert_to(t.{quoted_body}::text, 'UTF8')"),
        };
        let others = self.columns.iter().filter(|column| column.name != of_body.name);
        let others: Vec<String> =
            others.map(|column| format!("t.{}", quoted(&column.name))).collect();
        let attributes =
            format!("(select to_jsonb(r)::text from (select {}) r)", others.join(", "));
        Ok(format!("{key}::text, {body}, {attributes}, {headers}"))
    }

    /// Returns a text parameter, cast to the key's type.
    pub(super) fn parameter(&self, number: usize) -> String {
        format!("(${number}::text)::{}", self.key_type)
    }

    /// Returns a text array parameter, cast to an array of the key's type.
    pub(super) fn parameters(&self, number: usize) -> String {
        format!("(${number}::text[])::{}[]", self.key_type)
    }
}
