//! The rows of a database: whether what was there is there as it was, and who owns what is new.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::owned::{CANARY, Names};

/// What changes by itself or with anybody's rows: the leases of the process, content that nothing
/// refers to, and how far the log and the audit have come.
const OTHERS: [&str; 5] = ["leader", "blob", "blob_data", "log_head", "audit_head"];

/// A table: the names of its columns, and how often each row is there.
type Table = (Vec<String>, BTreeMap<Vec<String>, usize>);

/// A second connection to a store's file, and what was there.
pub(super) struct Rows {
    connection: Connection,
    owner: &'static str,
    tables: BTreeMap<String, Table>,
}

impl Rows {
    pub(super) fn open(file: &Path, owner: &'static str) -> Self {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(file, flags).expect("a store's file");
        Self { connection, owner, tables: BTreeMap::new() }
    }

    /// Takes what there is for what should be there.
    pub(super) fn look(&mut self) {
        self.tables = self.read();
    }

    /// What is not as it was, and what is new and would be the owner's.
    pub(super) fn changed(&self, owned: &Names) -> Vec<String> {
        let mut wrong = Vec::new();
        for (name, (columns, now)) in self.read() {
            let (_, before) = &self.tables[&name];
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

    /// How many executions have this text in their log.
    pub(super) fn executions_with(&self, text: &str) -> usize {
        let (columns, events) = self.table("event");
        let place = columns.iter().position(|column| column == "execution_id").expect("a column");
        let holding = events.keys().filter(|row| row.iter().any(|cell| cell.contains(text)));
        holding.map(|row| &row[place]).collect::<BTreeSet<_>>().len()
    }

    fn read(&self) -> BTreeMap<String, Table> {
        let names =
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
        let mut names = self.connection.prepare(names).expect("a statement");
        let names = names.query_map([], |row| row.get::<_, String>(0)).expect("tables");
        let names = names.map(|name| name.expect("a name"));
        let names = names.filter(|name| !OTHERS.contains(&name.as_str()));
        names.map(|name| (name.clone(), self.table(&name))).collect()
    }

    fn table(&self, name: &str) -> Table {
        let mut statement =
            self.connection.prepare(&format!("SELECT * FROM \"{name}\"")).expect("a table");
        let columns: Vec<String> =
            statement.column_names().into_iter().map(str::to_owned).collect();
        let mut rows = statement.query([]).expect("rows");
        let mut counts = BTreeMap::new();
        while let Some(row) = rows.next().expect("a row") {
            let cells = (0..columns.len()).map(|place| match row.get_ref(place).expect("a cell") {
                rusqlite::types::ValueRef::Integer(number) => number.to_string(),
                rusqlite::types::ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
                other => format!("{other:?}"),
            });
            *counts.entry(cells.collect()).or_insert(0) += 1;
        }
        (columns, counts)
    }
}
