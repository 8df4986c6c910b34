//! Selects and opens the store: in memory, SQLite, or Postgres.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use noetl_config::{MASK, Origin, Secret, Settings, tree};
use noetl_store::{Store, StoreError, TableSize};
use noetl_store_postgres::{self as postgres, PostgresStore};
use noetl_store_sqlite::{self as sqlite, SqliteStore};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

use crate::error::{CliError, ErrorKind};
use crate::outbox;
use crate::settings;

/// File name of the database in a data directory.
const FILE: &str = "noetl.db";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Database {
    /// Memory of this process; lost when it exits.
    Memory,
    /// SQLite file on this machine.
    Sqlite(PathBuf),
    /// URL of a Postgres database.
    Postgres(String),
}

impl Database {
    pub(crate) fn from_url(url: &str) -> Result<Self, CliError> {
        let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
        match scheme {
            "sqlite" => match rest.strip_prefix("//").unwrap_or(rest) {
                ":memory:" | "memory:" => Ok(Self::Memory),
                "" => Err(not_a_url(url)),
                path => Ok(Self::Sqlite(PathBuf::from(path))),
            },
            "postgres" | "postgresql" => Ok(Self::Postgres(url.to_owned())),
            _ => Err(not_a_url(url)),
        }
    }

    /// Returns the database of the configured URL, else that of the Postgres host, else `None`.
    pub(crate) fn named(settings: &tree::Database) -> Result<Option<Self>, CliError> {
        match (&settings.url, &settings.host) {
            (Some(url), _) => Self::from_url(url.expose()).map(Some),
            (None, Some(host)) => {
                let password = settings.password.as_ref().map(Secret::expose);
                let (user, name) = (&settings.user, &settings.name);
                let url = postgres_url(host, settings.port, user, password, name);
                Ok(Some(Self::Postgres(url)))
            }
            (None, None) => Ok(None),
        }
    }

    /// Returns the configured database, else the file in the data directory. For verbs that use
    /// this directory only for the database, so its flag wins over variables.
    pub(crate) fn configured(settings: &Settings) -> Result<Self, CliError> {
        let database: tree::Database = settings::decode(settings)?;
        let is_flag = |key: &str| matches!(settings.origin_of(key), Origin::Flag(_));
        if is_flag("database.data") && !is_flag("database.url") {
            return Ok(Self::in_directory(&database.data));
        }
        Ok(Self::named(&database)?.unwrap_or_else(|| Self::in_directory(&database.data)))
    }

    /// Returns the database file of a data directory.
    pub(crate) fn in_directory(data: &Path) -> Self {
        Self::Sqlite(data.join(FILE))
    }

    /// Returns the name of the database for messages, without its password.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Memory => "in memory".to_owned(),
            Self::Sqlite(path) => path.display().to_string(),
            Self::Postgres(url) => without_password(url),
        }
    }

    /// Returns `true` if both are the same database, regardless of the user that connects.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let place = |database: &Self| match database {
            Self::Postgres(url) => {
                let rest = url.split_once("://").map_or(&**url, |(_, rest)| rest);
                let (authority, path) = authority(rest);
                let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
                format!("postgres://{host}{path}")
            }
            Self::Memory | Self::Sqlite(_) => database.name(),
        };
        place(self) == place(other)
    }

    /// Returns the damage of a SQLite schema that is too corrupt to open, else `None`.
    pub(crate) fn damage(&self) -> Option<String> {
        match self {
            Self::Sqlite(path) => match sqlite::schema(path) {
                Err(error @ sqlite::OpenError::Corrupt { .. }) => Some(error.to_string()),
                Ok(_) | Err(_) => None,
            },
            Self::Memory | Self::Postgres(_) => None,
        }
    }

    /// Returns the schema version of the database and the latest one known to this program.
    /// Read-only.
    pub(crate) async fn schema(&self) -> Result<(i64, i64), CliError> {
        match self {
            Self::Memory => Err(memory_is_gone()),
            Self::Sqlite(path) => {
                let schema = sqlite::schema(path).map_err(|error| unopened(&error))?;
                let number = |count| i64::try_from(count).unwrap_or(i64::MAX);
                Ok((number(schema.found), number(schema.known)))
            }
            Self::Postgres(url) => {
                let schema = postgres::schema(&postgres_options(url)?).await;
                let schema = schema.map_err(|error| not_opened(&error))?;
                Ok((schema.found.into(), schema.known.into()))
            }
        }
    }

    /// Opens the database for reading. Does not migrate it and does not disturb the process that
    /// owns it.
    pub(crate) async fn look_at(self) -> Result<OpenStore, CliError> {
        match self {
            Self::Memory => Err(memory_is_gone()),
            Self::Sqlite(path) => {
                let store = SqliteStore::look_at(path).map_err(|error| unopened(&error))?;
                Ok(OpenStore::Sqlite(Arc::new(store)))
            }
            Self::Postgres(url) => {
                let store = PostgresStore::open(postgres_options(&url)?.migrate(false)).await;
                let store = store.map_err(|error| not_opened(&error))?;
                Ok(OpenStore::Postgres(Arc::new(store)))
            }
        }
    }

    /// Opens the database and migrates its schema to the latest version.
    pub(crate) async fn open(self) -> Result<OpenStore, CliError> {
        match self {
            Self::Memory => open_sqlite(sqlite::Options::memory()),
            Self::Sqlite(path) => open_sqlite(sqlite::Options::file(path)),
            Self::Postgres(url) => {
                let store = PostgresStore::open(postgres_options(&url)?).await;
                let store = store.map_err(|error| not_opened(&error))?;
                Ok(OpenStore::Postgres(Arc::new(store)))
            }
        }
    }
}

/// A store that is open.
pub(crate) enum OpenStore {
    Sqlite(Arc<SqliteStore>),
    Postgres(Arc<PostgresStore>),
}

impl OpenStore {
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(store) => store.clone(),
            Self::Postgres(store) => store.clone(),
        }
    }

    /// Returns the problems found by the integrity check of the database.
    pub(crate) async fn check(&self) -> Result<Vec<String>, StoreError> {
        match self {
            Self::Sqlite(store) => store.check().await,
            Self::Postgres(store) => store.check().await,
        }
    }

    /// Returns the rows and bytes of each table.
    pub(crate) async fn tables(&self) -> Result<Vec<TableSize>, StoreError> {
        match self {
            Self::Sqlite(store) => store.tables().await,
            Self::Postgres(store) => store.tables().await,
        }
    }

    /// Closes the store if this is the last reference. Otherwise the last request that uses the
    /// store closes it.
    pub(crate) async fn close(self) {
        match self {
            Self::Sqlite(store) => {
                if let Some(store) = Arc::into_inner(store) {
                    store.close().await;
                }
            }
            Self::Postgres(store) => {
                if let Some(store) = Arc::into_inner(store) {
                    store.close().await;
                }
            }
        }
    }
}

fn open_sqlite(options: sqlite::Options) -> Result<OpenStore, CliError> {
    let outbox = outbox::options()?;
    let options = sqlite::Options { synchronous: synchronous()?, outbox, ..options };
    let store = SqliteStore::open(options).map_err(|error| unopened(&error))?;
    Ok(OpenStore::Sqlite(Arc::new(store)))
}

/// Returns the options of a Postgres store.
pub(crate) fn postgres_options(url: &str) -> Result<postgres::Options, CliError> {
    let failed = |error: postgres::OpenError| not_opened(&error);
    let mut options = postgres::Options::new(url).map_err(failed)?.outbox(outbox::options()?);
    let database = settings_of(settings::current(), url)?;
    options = options
        .connections(database.max_connections)
        .acquire_timeout(database.acquire_timeout_secs)
        .statement_cache(database.statement_cache_capacity);
    if let Some(direct) = &database.direct_url {
        options = options.direct_url(direct.expose()).map_err(failed)?;
    }
    Ok(options)
}

/// Returns the settings of the database with this URL. A URL that only a flag named replaces the
/// direct URL of another database in a file.
fn settings_of(settings: &Settings, url: &str) -> Result<tree::Database, CliError> {
    let database: tree::Database = settings::decode(settings)?;
    if Database::named(&database)? == Some(Database::Postgres(url.to_owned())) {
        return Ok(database);
    }
    let named = [("database.url", "database-url", url.into())];
    settings::decode(&settings.with_flags(named))
}

fn not_a_url(url: &str) -> CliError {
    let message = format!("'{}' is not a database URL", without_password(url));
    CliError::new(ErrorKind::Config, message)
        .hint("use sqlite://path/to/noetl.db or postgres://user:password@host:port/database")
}

fn not_opened(error: &postgres::OpenError) -> CliError {
    let failure = CliError::from_error(ErrorKind::Config, error);
    match error {
        postgres::OpenError::Connect { .. } => {
            failure.hint("check that the server runs there and takes this user and password")
        }
        postgres::OpenError::Newer { .. } => failure.hint("use the newer noetl for this database"),
        _ => failure,
    }
}

fn memory_is_gone() -> CliError {
    CliError::new(ErrorKind::User, "a database in memory is gone with its process")
        .hint("name a file or a server with --data or --database-url")
}

pub(crate) fn unopened(error: &sqlite::OpenError) -> CliError {
    let failure = CliError::from_error(ErrorKind::Config, error);
    match error {
        sqlite::OpenError::InUse { .. } => {
            failure.hint("stop the other process, or choose another file")
        }
        sqlite::OpenError::NotADatabase { .. } | sqlite::OpenError::NotOurs { .. } => {
            failure.hint("name a file that noetl made, or one that does not exist yet")
        }
        sqlite::OpenError::Newer { .. } => failure.hint("use the newer noetl for this file"),
        sqlite::OpenError::Older { .. } => failure.hint("run `noetl db migrate`"),
        sqlite::OpenError::Corrupt { .. } => {
            failure.hint("restore the file from a backup; it was not changed")
        }
        sqlite::OpenError::Io { .. } | sqlite::OpenError::Database { .. } => failure,
    }
}

fn synchronous() -> Result<sqlite::Synchronous, CliError> {
    let database: tree::Database = settings::section()?;
    Ok(match database.sqlite_synchronous.as_str() {
        "normal" => sqlite::Synchronous::Normal,
        _ => sqlite::Synchronous::Full,
    })
}

/// Splits a URL without its scheme into the authority, which may contain user and password, and the
/// rest, which begins with the path.
fn authority(rest: &str) -> (&str, &str) {
    rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()))
}

/// Removes the passwords from a URL: the part between `:` and the last `@`, and a query with a
/// password. Returns only the scheme if a password may contain separators.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = authority(rest);
    if path.contains('@') {
        return format!("{scheme}://{MASK}");
    }
    let path = match path.split_once('?') {
        Some((path, query)) if query.to_ascii_lowercase().contains("pass") => {
            format!("{path}?{MASK}")
        }
        _ => path.to_owned(),
    };
    match authority.rsplit_once('@') {
        Some((who, host)) => {
            let user = who.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}@{host}{path}")
        }
        None => format!("{scheme}://{authority}{path}"),
    }
}

/// Builds the URL of a Postgres database.
pub(crate) fn postgres_url(
    host: &str,
    port: u16,
    user: &str,
    password: Option<&str>,
    database: &str,
) -> String {
    let password = password.map(|text| format!(":{}", escaped(text))).unwrap_or_default();
    // An IPv6 address contains colons and needs brackets.
    let host = match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    };
    format!("postgres://{}{password}@{host}:{port}/{}", escaped(user), escaped(database))
}

/// Characters encoded in a part of a URL: all but those that URLs never reserve.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Encodes text for use in a URL, with percent-encoding.
fn escaped(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, RESERVED)
}

#[cfg(test)]
mod tests {
    use noetl_config::FileLayer;

    use super::*;
    use crate::stores::StoreLocation;

    #[test]
    fn the_url_scheme_selects_the_store() {
        let path = |text: &str| Database::Sqlite(PathBuf::from(text));
        for (url, expected) in [
            ("sqlite://noetl-data/noetl.db", path("noetl-data/noetl.db")),
            ("sqlite:///var/lib/noetl.db", path("/var/lib/noetl.db")),
            ("sqlite::memory:", Database::Memory),
            ("postgres://u@h/d", Database::Postgres("postgres://u@h/d".into())),
            ("postgresql://h/d", Database::Postgres("postgresql://h/d".into())),
        ] {
            assert_eq!(Database::from_url(url).ok(), Some(expected), "{url}");
        }
        for url in ["", "noetl.db", "mysql://h/d", "sqlite://"] {
            assert!(Database::from_url(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_data_directory_flag_overrides_every_other_layer() {
        let layer = |text: &str| {
            FileLayer::parse(Path::new("f"), text.as_bytes(), true).expect("a valid file")
        };
        let in_b = Database::Sqlite(PathBuf::from("b/noetl.db"));
        let data =
            |settings: &Settings| settings.with_flags([("database.data", "data", "b".into())]);
        for text in ["url = 'sqlite://a.db'", "host = 'h'", "shards = 'sqlite://a.db'"] {
            let file = layer(&format!("[database]\n{text}\n"));
            let settings = data(&Settings::new(vec![file.clone()], []));
            assert_eq!(Database::configured(&settings).ok(), Some(in_b.clone()), "{text}");
            let location = StoreLocation::configured(&settings).ok();
            assert_eq!(location, Some(StoreLocation::One(in_b.clone())), "{text}");
            let settings = Settings::new(vec![file], [("NOETL_DATA".into(), "b".into())]);
            assert_eq!(Database::configured(&settings).ok(), Some(in_b.clone()), "{text}");
            let location = StoreLocation::configured(&settings).ok();
            assert_eq!(location, Some(StoreLocation::One(in_b.clone())), "{text}");
        }
        for variable in [("NOETL_DATABASE_URL", "sqlite://a.db"), ("POSTGRES_HOST", "h")] {
            let variables = [(variable.0.into(), variable.1.into())];
            let settings = data(&Settings::new(Vec::new(), variables));
            assert_eq!(Database::configured(&settings).ok(), Some(in_b.clone()), "{variable:?}");
            // The directory of `noetl dev` contains the key beside that database.
            let location = StoreLocation::configured(&settings).ok();
            assert_ne!(location, Some(StoreLocation::One(in_b.clone())), "{variable:?}");
            let url = [("database.url", "database-url", "sqlite://c.db".into())];
            let database = Database::configured(&settings.with_flags(url)).ok();
            assert_eq!(database, Some(Database::Sqlite(PathBuf::from("c.db"))), "{variable:?}");
        }
    }

    #[test]
    fn database_names_contain_no_password() {
        for (url, name) in [
            ("postgres://ada:p%40ss@db:5432/noetl", "postgres://ada@db:5432/noetl"),
            ("postgres://ada:hun@ter2@db/noetl", "postgres://ada@db/noetl"),
            ("postgres://ada:hun/ter2@db/noetl", "postgres://********"),
            ("postgres://ada:hun?ter2@db/noetl", "postgres://********"),
            ("postgres://db/x?user=ada&password=hun@ter2", "postgres://********"),
            ("postgres://db/x?user=ada&password=hunter2", "postgres://db/x?********"),
            ("postgres://ada@db/x?sslmode=require", "postgres://ada@db/x?sslmode=require"),
        ] {
            assert_eq!(Database::Postgres(url.into()).name(), name);
        }
    }

    #[test]
    fn a_direct_url_applies_only_to_its_database() {
        let text = "[database]\nurl = 'postgres://p/x'\ndirect_url = 'postgres://direct/x'\n";
        let file = FileLayer::parse(Path::new("f"), text.as_bytes(), true).expect("a valid file");
        let settings = Settings::new(vec![file], []);
        let direct = |url: &str| settings_of(&settings, url).expect("settings").direct_url;
        assert!(direct("postgres://p/x").is_some());
        assert!(direct("postgres://staging/x").is_none());
    }

    #[test]
    fn urls_of_one_database_are_equal_despite_different_users() {
        let is_same = |one: &str, other: &str| {
            Database::Postgres(one.into()).is_same(&Database::Postgres(other.into()))
        };
        assert!(is_same("postgres://ada:p@ss@db/x", "postgresql://eve@db/x"));
        assert!(!is_same("postgres://ada@db/x", "postgres://ada@db/y"));
        assert!(!is_same("postgres://a/x?password=p@y", "postgres://b/x?password=p@y"));
    }

    #[test]
    fn parts_of_a_url_are_escaped() {
        assert_eq!(escaped("p@ss/w:rd é").to_string(), "p%40ss%2Fw%3Ard%20%C3%A9");
    }
}
