//! Contents of the database, to detect changes.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

/// Tables that change without a change of data: process leases, the audit of secrets, which
/// includes refusals, and unreferenced blobs, which are collected.
const OTHERS: [&str; 4] = ["leader", "secret_audit", "blob", "blob_data"];

/// A second connection to a store's file.
pub(crate) struct Database {
    connection: Connection,
    version: i64,
    tables: BTreeMap<String, u64>,
}

impl Database {
    pub(crate) fn open(file: &Path) -> Self {
        let connection = connect(file);
        let mut database = Self { connection, version: -1, tables: BTreeMap::new() };
        database.look();
        assert!(database.tables.len() > 10, "{:?}", database.tables);
        database
    }

    /// Takes what there is for what should be there.
    pub(crate) fn look(&mut self) {
        self.version = self.data_version();
        self.tables = self.read();
    }

    /// The tables that are not as they were; then they are looked at again.
    pub(crate) fn changed(&mut self) -> Option<String> {
        let version = self.data_version();
        if version == self.version {
            return None;
        }
        self.version = version;
        let before = std::mem::take(&mut self.tables);
        self.tables = self.read();
        let changed =
            self.tables.iter().filter(|(name, digest)| before.get(*name) != Some(*digest));
        let changed: Vec<&str> = changed.map(|(name, _)| name.as_str()).collect();
        (!changed.is_empty()).then(|| changed.join(", "))
    }

    /// A number that others' commits change.
    fn data_version(&self) -> i64 {
        let version = self.connection.query_row("PRAGMA data_version", [], |row| row.get(0));
        version.expect("a database")
    }

    /// A digest of every table's rows.
    fn read(&self) -> BTreeMap<String, u64> {
        let tables = tables(&self.connection).into_iter();
        let tables = tables.filter(|(name, _)| !OTHERS.contains(&name.as_str()));
        tables.map(|(name, table)| (name, digest(&table))).collect()
    }
}

fn digest(value: &impl Hash) -> u64 {
    let mut digest = DefaultHasher::new();
    value.hash(&mut digest);
    digest.finish()
}

/// A table: the names of its columns, and how often each row is there, as text.
#[derive(Hash)]
pub(crate) struct Table {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: BTreeMap<Vec<String>, usize>,
}

/// A second connection to a store's file.
pub(crate) fn connect(file: &Path) -> Connection {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(file, flags).expect("a store's file")
}

/// Returns the contents of all tables of a file.
pub(crate) fn tables(connection: &Connection) -> BTreeMap<String, Table> {
    let names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    let mut names = connection.prepare(names).expect("a statement");
    let names = names.query_map([], |row| row.get::<_, String>(0)).expect("tables");
    let names = names.map(|name| name.expect("a name"));
    names.map(|name| (name.clone(), table(connection, &name))).collect()
}

fn table(connection: &Connection, name: &str) -> Table {
    let mut statement = connection.prepare(&format!("SELECT * FROM \"{name}\"")).expect("a table");
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut result_rows = statement.query([]).expect("rows");
    let mut rows = BTreeMap::new();
    while let Some(row) = result_rows.next().expect("a row") {
        let cells = (0..columns.len()).map(|place| match row.get_ref(place).expect("a cell") {
            ValueRef::Null => "null".to_owned(),
            ValueRef::Integer(number) => number.to_string(),
            ValueRef::Real(number) => number.to_string(),
            ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
            ValueRef::Blob(bytes) => format!("{} bytes, {:x}", bytes.len(), digest(&bytes)),
        });
        *rows.entry(cells.collect()).or_insert(0) += 1;
    }
    Table { columns, rows }
}
