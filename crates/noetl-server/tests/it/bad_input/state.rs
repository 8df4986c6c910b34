//! What is in the database, so that a change is seen.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

/// What changes without anything being changed: the lease of the process, the record of who asked for
/// secrets, which refusals are in, too, and content that nothing refers to, which is collected.
const OTHERS: [&str; 4] = ["leader", "secret_audit", "blob", "blob_data"];

/// A second connection to a store's file.
pub(crate) struct Database {
    connection: Connection,
    version: i64,
    tables: BTreeMap<String, u64>,
}

impl Database {
    pub(crate) fn open(file: &Path) -> Self {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(file, flags).expect("a store's file");
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
        let found = self.connection.query_row("PRAGMA data_version", [], |row| row.get(0));
        found.expect("a database")
    }

    /// A digest of every table's rows.
    fn read(&self) -> BTreeMap<String, u64> {
        let names =
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
        let mut names = self.connection.prepare(names).expect("a statement");
        let names = names.query_map([], |row| row.get::<_, String>(0)).expect("tables");
        let names = names.map(|name| name.expect("a name"));
        let names = names.filter(|name| !OTHERS.contains(&name.as_str()));
        names.map(|name| (name.clone(), self.digest(&name))).collect()
    }

    fn digest(&self, table: &str) -> u64 {
        let mut rows =
            self.connection.prepare(&format!("SELECT * FROM \"{table}\"")).expect("a table");
        let columns = rows.column_count();
        let mut rows = rows.query([]).expect("rows");
        let mut digest = DefaultHasher::new();
        while let Some(row) = rows.next().expect("a row") {
            for column in 0..columns {
                match row.get_ref(column).expect("a column") {
                    ValueRef::Null => 0.hash(&mut digest),
                    ValueRef::Integer(number) => number.hash(&mut digest),
                    ValueRef::Real(number) => number.to_bits().hash(&mut digest),
                    ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.hash(&mut digest),
                }
            }
        }
        digest.finish()
    }
}
