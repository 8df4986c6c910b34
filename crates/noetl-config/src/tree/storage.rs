//! Settings of databases, blobs, and keys.

use std::path::PathBuf;
use std::time::Duration;

use crate::kind::Kind;
use crate::secret::Secret;
use crate::setting::{Feature, Setting, section};

section! {
    /// Databases of the event log. The shards apply, else the URL, else the parts of a Postgres
    /// URL, else the file in the data directory. One kind in the environment or a flag replaces
    /// another kind in a file, and so does the data directory.
    Database = "database" {
        /// Directory for the database of `noetl dev`, its encryption key, and its token.
        data: PathBuf = Setting::new(Kind::Path, &["NOETL_DATA"])
            .default("noetl-data").flag("data", "DIR").guarded();
        /// Database to use instead of the data directory: `sqlite://path`, or
        /// `postgres://user:password@host:port/database`.
        url: Option<Secret> = Setting::new(Kind::Text, &["NOETL_DATABASE_URL"])
            .flag("database-url", "URL").url();
        /// URL past a proxy that pools connections by transaction, for what needs a session.
        direct_url: Option<Secret> =
            Setting::new(Kind::Text, &["NOETL_DATABASE_DIRECT_URL"]).url();
        /// Host of a Postgres database, instead of a URL.
        host: Option<String> = Setting::new(Kind::Text, &["POSTGRES_HOST"]).guarded();
        /// Port of the Postgres database, with a host.
        port: u16 = Setting::new(Kind::Number { min: 1, max: 65_535 }, &["POSTGRES_PORT"])
            .default("5432").guarded().only_with(Feature::PostgresHost);
        /// User of the Postgres database, with a host.
        user: String = Setting::new(Kind::Text, &["POSTGRES_USER"]).default("noetl").guarded();
        /// Password of the user.
        password: Option<Secret> = Setting::new(Kind::Text, &["POSTGRES_PASSWORD"]).secret();
        /// Name of the Postgres database, with a host.
        name: String =
            Setting::new(Kind::Text, &["POSTGRES_DATABASE"]).default("noetl").guarded();
        /// Maximum number of connections to Postgres.
        max_connections: u32 =
            Setting::new(Kind::Number { min: 3, max: 10_000 }, &["POSTGRES_MAX_CONNECTIONS"])
                .default("10").only_with(Feature::Postgres);
        /// Time limit for a free connection to Postgres, in seconds.
        acquire_timeout_secs: Duration =
            Setting::new(Kind::Seconds { min: 1, max: 3600 }, &["POSTGRES_ACQUIRE_TIMEOUT"])
                .default("30").only_with(Feature::Postgres);
        /// Maximum number of prepared statements per connection; 0 behind a proxy that pools by
        /// transaction.
        statement_cache_capacity: usize = Setting::new(
            Kind::Number { min: 0, max: 100_000 },
            &["NOETL_PG_STATEMENT_CACHE_CAPACITY"],
        ).default("100").only_with(Feature::Postgres);
        /// Event that a commit to SQLite waits for: `full` survives a power failure, `normal` a
        /// crash of the process.
        sqlite_synchronous: String =
            Setting::new(Kind::Choice(&["full", "normal"]), &["NOETL_SQLITE_SYNCHRONOUS"])
                .default("full").guarded();
        /// Databases that executions are distributed over, separated by commas. Each is
        /// `host=..;port=..;user=..;password=..;database=..` or a database URL. Never change their
        /// order.
        shards: Option<Secret> = Setting::new(Kind::Text, &["NOETL_SHARDS"]).secret();
        /// Database for data that doesn't belong to an execution, in the form of a shard.
        cluster: Option<Secret> = Setting::new(Kind::Text, &["NOETL_CLUSTER_DSN"])
            .secret().note("first shard");
    }
}

section! {
    /// Storage of large results.
    Results = "results" {
        /// Store of large results: `db:`, `file:///directory`, or `s3://bucket/prefix`. Access to
        /// a bucket is configured by the `AWS_*` variables.
        url: Option<String> =
            Setting::new(Kind::Text, &["NOETL_RESULTS_URL"]).note("database").url();
    }
}

section! {
    /// Encryption and audit of credentials.
    Secrets = "secrets" {
        /// Key that encrypts credentials: base64 of 32 bytes. All servers of a database share it.
        encryption_key: Option<Secret> = Setting::new(Kind::Text, &["NOETL_ENCRYPTION_KEY"])
            .secret().note("file in the data directory, in noetl dev");
        /// Version of the key, stored with each value.
        encryption_key_version: Option<String> =
            Setting::new(Kind::Text, &["NOETL_ENCRYPTION_KEY_VERSION"]).guarded();
        /// Key that was used before, for values that it encrypted.
        encryption_key_previous: Option<Secret> =
            Setting::new(Kind::Text, &["NOETL_ENCRYPTION_KEY_PREVIOUS"]).secret();
        /// Deny secrets whose use can't be recorded in the audit.
        audit_required: bool = Setting::new(Kind::Switch, &["NOETL_SECRET_AUDIT_REQUIRED"])
            .default("false").guarded();
    }
}
