//! Migrated databases to copy: one per set of migrations and day on each server.

use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{database_url, psql};

const DAY: Duration = Duration::from_secs(24 * 3600);

type Migrate = Box<dyn FnOnce(String) -> Pin<Box<dyn Future<Output = ()>>> + Send>;

/// A database to copy, filled by a migration that the caller passes.
pub struct Template {
    migrations: PathBuf,
    migrate: Migrate,
}

impl Template {
    /// Describes a template that `migrate` fills, given the URL of an empty database.
    ///
    /// The files in `migrations` identify the template: a change to one of them makes a new one.
    pub fn new<F: Future<Output = ()> + 'static>(
        migrations: impl Into<PathBuf>,
        migrate: impl FnOnce(String) -> F + Send + 'static,
    ) -> Self {
        let migrate: Migrate = Box::new(move |url| Box::pin(migrate(url)));
        Self { migrations: migrations.into(), migrate }
    }

    /// Returns the template's name on a server, and creates it if needed. Of tests that ask at the
    /// same time, one creates it and the others wait.
    pub(super) fn ensure(self, server: &str) -> String {
        let name = name(&self.migrations);
        let exists = || {
            let sql =
                format!("select 1 from pg_database where datname = '{name}' and datistemplate");
            psql(server, &sql) == "1"
        };
        if exists() {
            return name;
        }
        let path = std::env::temp_dir().join(format!("{name}.lock"));
        let lock = File::create(path).expect("a lock file");
        lock.lock().expect("a lock");
        if !exists() {
            // A test that was killed may have left a part of it.
            psql(server, &format!("drop database if exists {name} with (force)"));
            psql(server, &format!("create database {name}"));
            migrate(self.migrate, database_url(server, &name));
            // Last, so that only a complete database is copied.
            psql(server, &format!("alter database {name} is_template true"));
        }
        name
    }
}

/// Names a template by the content of its migrations and by the day: migrations may create partitions
/// for the current time.
#[expect(clippy::disallowed_methods, reason = "the crate depends on no crate with a clock")]
fn name(migrations: &Path) -> String {
    let mut files: Vec<_> = migrations
        .read_dir()
        .expect("a directory of migrations")
        .map(|entry| entry.expect("a directory entry").path())
        .collect();
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        std::fs::read(file).expect("a migration").hash(&mut hasher);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970");
    format!("template_{:016x}_{}", hasher.finish(), now.as_secs() / DAY.as_secs())
}

/// Runs a migration on its own thread, because the test's runtime must not block on another one.
fn migrate(migrate: Migrate, url: String) {
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(migrate(url));
    });
    thread.join().expect("the migration succeeds");
}
