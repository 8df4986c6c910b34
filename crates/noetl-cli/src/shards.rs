//! Parses `NOETL_SHARDS` and `NOETL_CLUSTER_DSN`, the databases that executions are distributed
//! over.
//!
//! An entry is `host=..;port=..;user=..;password=..;database=..` or a database URL. The program
//! doesn't start if an entry is invalid: skipping one would make it look for executions in the
//! wrong databases. No message shows a value that may be a password.

use noetl_config::Secret;
use noetl_config::tree;
use noetl_store::SHARDS_MAX;

use crate::database::{Database, postgres_url};
use crate::error::{CliError, ErrorKind};

/// Variable with the list of shard databases.
pub(crate) const SHARDS: &str = "NOETL_SHARDS";

/// Variable with the database for data that doesn't belong to an execution.
pub(crate) const CLUSTER: &str = "NOETL_CLUSTER_DSN";

/// Databases that executions are distributed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shards {
    /// Database for data that doesn't belong to an execution. Defaults to the first shard.
    pub(crate) cluster: Option<Database>,
    /// Shard databases. Never empty; the order determines the shard numbers.
    pub(crate) shards: Vec<Database>,
}

impl Shards {
    /// Returns the configured shards, or `None` if there are none.
    pub(crate) fn configured(settings: &tree::Database) -> Result<Option<Self>, CliError> {
        let text = |secret: &Option<Secret>| secret.as_ref().map(|it| it.expose().to_owned());
        parse(text(&settings.shards).as_deref(), text(&settings.cluster).as_deref())
    }
}

/// Parses the values of both variables.
fn parse(shards: Option<&str>, cluster: Option<&str>) -> Result<Option<Shards>, CliError> {
    let Some(text) = shards else {
        return match cluster {
            None => Ok(None),
            Some(_) => Err(wrong(format!("{CLUSTER} has no meaning without {SHARDS}"))),
        };
    };
    let mut shards: Vec<Database> = Vec::new();
    for (place, text) in (1..).zip(text.split(',')) {
        let database =
            entry(text).map_err(|why| wrong(format!("{SHARDS}, entry {place}: {why}")))?;
        let is_same = |known: &Database| *known != Database::Memory && known.is_same(&database);
        if let Some(earlier) = shards.iter().position(is_same) {
            let earlier = earlier + 1;
            let twice = format!("{SHARDS}: entries {earlier} and {place} are the same database");
            return Err(wrong(twice));
        }
        shards.push(database);
    }
    if shards.len() > SHARDS_MAX {
        let count = shards.len();
        return Err(wrong(format!("{SHARDS} has {count} entries; {SHARDS_MAX} are the most")));
    }
    let cluster = cluster.map(|text| entry(text).map_err(|why| wrong(format!("{CLUSTER}: {why}"))));
    Ok(Some(Shards { cluster: cluster.transpose()?, shards }))
}

/// Parses an entry, or returns the reason why it is invalid.
fn entry(text: &str) -> Result<Database, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    let is_url = ["sqlite:", "postgres:", "postgresql:"].iter().any(|url| text.starts_with(url));
    if is_url {
        return Database::from_url(text).map_err(|failure| failure.text());
    }
    let mut parts = EntryParts::default();
    for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        // The message omits the part, which may be the rest of a password that contains a `;`.
        let (key, value) = part.split_once('=').ok_or("a part of it is not key=value")?;
        parts.take(key.trim(), value.trim())?;
    }
    parts.database()
}

/// Keys of an entry with their values.
#[derive(Default)]
struct EntryParts<'a> {
    host: Option<&'a str>,
    port: Option<&'a str>,
    user: Option<&'a str>,
    password: Option<&'a str>,
    database: Option<&'a str>,
}

impl<'a> EntryParts<'a> {
    fn take(&mut self, key: &str, value: &'a str) -> Result<(), String> {
        let part = match key {
            "host" => &mut self.host,
            "port" => &mut self.port,
            "user" => &mut self.user,
            "password" => &mut self.password,
            "database" | "dbname" => &mut self.database,
            _ => return Err(format!("unknown key '{key}'")),
        };
        if part.is_some() {
            return Err(format!("key '{key}' is given twice"));
        }
        if value.is_empty() && key != "password" {
            return Err(format!("key '{key}' has no value"));
        }
        *part = Some(value);
        Ok(())
    }

    fn database(self) -> Result<Database, String> {
        let missing = |key: &str| format!("key '{key}' is missing");
        let host = self.host.ok_or_else(|| missing("host"))?;
        let user = self.user.ok_or_else(|| missing("user"))?;
        if host.contains(['/', '@', '?', '#', ' ']) {
            return Err(format!("key 'host' is a name or an address, not '{host}'"));
        }
        let port = self.port.unwrap_or("5432");
        let port: u16 = port
            .parse()
            .ok()
            .filter(|port| *port > 0)
            .ok_or_else(|| format!("key 'port' is a number from 1 to 65535, not '{port}'"))?;
        let password = self.password.filter(|password| !password.is_empty());
        let database = self.database.unwrap_or("noetl");
        Ok(Database::Postgres(postgres_url(host, port, user, password, database)))
    }
}

fn wrong(message: String) -> CliError {
    CliError::new(ErrorKind::Config, message)
        .hint("an entry is host=..;port=..;user=..;password=..;database=.. or a database URL")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(shards: &str) -> Vec<Database> {
        parse(Some(shards), None).expect("settings").expect("shards").shards
    }

    fn why(shards: &str) -> String {
        parse(Some(shards), None).expect_err(shards).text()
    }

    #[test]
    fn entries_are_parsed_in_order_with_defaults() {
        let postgres = |url: &str| Database::Postgres(url.to_owned());
        let text = "host=db1;port=5433;user=ada;password=p@ss=x;database=flows, \
            host = db2 ; user = ada ; dbname = other ;,host=db3;user=ada;password=,\
            postgres://u:p@db4/d,sqlite://shard-4.db";
        let expected = [
            postgres("postgres://ada:p%40ss%3Dx@db1:5433/flows"),
            postgres("postgres://ada@db2:5432/other"),
            postgres("postgres://ada@db3:5432/noetl"),
            postgres("postgres://u:p@db4/d"),
            Database::Sqlite("shard-4.db".into()),
        ];
        assert_eq!(urls(text), expected);
        assert_eq!(urls("host=::1;user=ada"), [postgres("postgres://ada@[::1]:5432/noetl")]);
    }

    #[test]
    fn invalid_settings_are_reported_with_their_key() {
        for (text, expected) in [
            ("host=a;user=u,host=b;user=u;hots=c", "NOETL_SHARDS, entry 2: unknown key 'hots'"),
            (
                "host=a;user=u;port=0",
                "NOETL_SHARDS, entry 1: key 'port' is a number from 1 to 65535, not '0'",
            ),
            (
                "host=a;user=u;port=x",
                "NOETL_SHARDS, entry 1: key 'port' is a number from 1 to 65535, not 'x'",
            ),
            (
                "host=a;user=u;port=65536",
                "NOETL_SHARDS, entry 1: key 'port' is a number from 1 to 65535, not '65536'",
            ),
            ("user=u", "NOETL_SHARDS, entry 1: key 'host' is missing"),
            ("host=a", "NOETL_SHARDS, entry 1: key 'user' is missing"),
            ("host=;user=u", "NOETL_SHARDS, entry 1: key 'host' has no value"),
            (
                "host=a/b;user=u",
                "NOETL_SHARDS, entry 1: key 'host' is a name or an address, not 'a/b'",
            ),
            ("host=a;user=u;HOST=b", "NOETL_SHARDS, entry 1: unknown key 'HOST'"),
            (
                "host=a;user=u;database=x;dbname=y",
                "NOETL_SHARDS, entry 1: key 'dbname' is given twice",
            ),
            ("host=a;user=u,", "NOETL_SHARDS, entry 2: it is empty"),
            (" ", "NOETL_SHARDS, entry 1: it is empty"),
            ("sqlite://", "NOETL_SHARDS, entry 1: 'sqlite://' is not a database URL"),
            (
                "host=a;user=u;password=b,host=a;user=w",
                "NOETL_SHARDS: entries 1 and 2 are the same database",
            ),
            ("sqlite://a.db,sqlite:a.db", "NOETL_SHARDS: entries 1 and 2 are the same database"),
        ] {
            assert_eq!(why(text), expected, "{text}");
        }
        let many = (0..=SHARDS_MAX).map(|n| format!("sqlite://{n}.db")).collect::<Vec<_>>();
        assert_eq!(why(&many.join(",")), "NOETL_SHARDS has 1025 entries; 1024 are the most");
    }

    #[test]
    fn error_messages_contain_no_password() {
        for text in [
            "host=a;user=u;password=hush;hush",
            "host=a;user=u;password=hush,hush",
            "host=a;user=u;password=hush;port=x",
            "host=a;user=u;password=hush;password=hush",
            "host=a;user=u;password=hush,host=a;user=u;password=hush",
        ] {
            assert!(!why(text).contains("hush"), "{text}");
        }
    }

    #[test]
    fn the_cluster_database_has_its_own_setting() {
        let parsed = parse(Some("sqlite://a.db"), Some("host=c;user=u")).expect("settings");
        let cluster = parsed.expect("shards").cluster;
        assert_eq!(cluster, Some(Database::Postgres("postgres://u@c:5432/noetl".into())));
        let why = |shards, cluster| parse(shards, Some(cluster)).expect_err(cluster).text();
        assert_eq!(why(Some("sqlite://a.db"), "x=y"), "NOETL_CLUSTER_DSN: unknown key 'x'");
        let alone = "NOETL_CLUSTER_DSN has no meaning without NOETL_SHARDS";
        assert_eq!(why(None, "sqlite://a.db"), alone);
        assert_eq!(parse(None, None).expect("settings"), None);
    }
}
