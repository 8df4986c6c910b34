//! A database with nothing but the tables in it, to be copied.

use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;

use noetl_model::Clock as _;
use noetl_store::SystemClock;
use noetl_store_postgres::{Options, PostgresStore};

use super::{at, psql};

const MIGRATIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../noetl-store-postgres/migrations");

/// The name of the one on this server, which is made if it is missing. Of tests that come at once one
/// makes it, and the others wait.
pub(super) fn of(server: &str) -> String {
    let name = name();
    let is_there = || {
        let sql = format!("select 1 from pg_database where datname = '{name}' and datistemplate");
        psql(server, &sql) == "1"
    };
    if is_there() {
        return name;
    }
    let lock = File::create(std::env::temp_dir().join(format!("{name}.lock"))).expect("a file");
    lock.lock().expect("a lock");
    if !is_there() {
        // One that was begun by a test that was killed.
        psql(server, &format!("drop database if exists {name} with (force)"));
        psql(server, &format!("create database {name}"));
        migrate(at(server, &name));
        // Last: only what is whole is copied.
        psql(server, &format!("alter database {name} is_template true"));
    }
    name
}

/// Another one for other tables, and for another day: some tables are made for a stretch of time.
fn name() -> String {
    let mut files: Vec<_> = Path::new(MIGRATIONS)
        .read_dir()
        .expect("the migrations")
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        std::fs::read(file).expect("a file").hash(&mut hasher);
    }
    let day = SystemClock.now().as_millis() / (24 * 3600 * 1000);
    format!("template_{:016x}_{day}", hasher.finish())
}

/// Makes the tables. Tests are on a runtime that must not be blocked by another, so this has a thread.
fn migrate(url: String) {
    let made = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let options = Options::new(&url).expect("a URL");
            PostgresStore::open(options).await.expect("a store").close().await;
        });
    });
    made.join().expect("tables");
}
