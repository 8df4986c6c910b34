//! The rows of a database: whether what was there is there as it was, and who owns what is new.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::Connection;

use super::owned::{CANARY, Names};
use crate::bad_input::state::{Table, connect, tables};

/// Tables that change by themselves or with data of any tenant: process leases, unreferenced blobs,
/// and the heads of the log and the audit.
const OTHERS: [&str; 5] = ["leader", "blob", "blob_data", "log_head", "audit_head"];

/// A second connection to a store's file, and what was there.
pub(super) struct Rows {
    connection: Connection,
    owner: &'static str,
    tables: BTreeMap<String, Table>,
}

impl Rows {
    pub(super) fn open(file: &Path, owner: &'static str) -> Self {
        Self { connection: connect(file), owner, tables: BTreeMap::new() }
    }

    /// Takes what there is for what should be there.
    pub(super) fn look(&mut self) {
        self.tables = tables(&self.connection);
    }

    /// Returns the changed rows, and new rows that mention the owner's data.
    pub(super) fn changed(&self, owned: &Names) -> Vec<String> {
        let mut wrong = Vec::new();
        for (name, Table { columns, rows: now }) in tables(&self.connection) {
            if OTHERS.contains(&name.as_str()) {
                continue;
            }
            let before = &self.tables[&name].rows;
            let gone = before.iter().filter(|(row, count)| now.get(*row) < Some(*count));
            wrong.extend(gone.map(|(row, _)| format!("{name} lost or changed {row:?}")));
            let new = now.iter().filter(|(row, count)| before.get(*row) < Some(*count));
            // What names a tenant may name any execution: it is found with that tenant only.
            let has_tenant = columns.iter().any(|column| column == "tenant_id");
            for (row, _) in new {
                let is_owners = columns.iter().zip(row).any(|(column, value)| match has_tenant {
                    true => column == "tenant_id" && value == self.owner,
                    false => column == "execution_id" && value == owned.get("execution"),
                });
                let holds = |secret: &str| row.iter().any(|value| value.contains(secret));
                if is_owners || holds(CANARY) || holds(owned.get("trace")) {
                    wrong.push(format!("{name} has something of the owner in {row:?}"));
                }
            }
        }
        wrong
    }

    /// Counts the executions with this text in their log.
    pub(super) fn executions_with(&self, text: &str) -> usize {
        let Table { columns, rows } = &tables(&self.connection)["event_append"];
        let place = columns.iter().position(|column| column == "execution_id").expect("a column");
        let holding = rows.keys().filter(|row| row.iter().any(|cell| cell.contains(text)));
        holding.map(|row| &row[place]).collect::<BTreeSet<_>>().len()
    }
}
