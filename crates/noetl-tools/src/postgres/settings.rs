//! Parses the connection settings of a `postgres` step.

use std::str::FromStr;
use std::time::Duration;

use noetl_model::{Failure, Map, Value};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::tls::Verify;
use crate::config::{plain, type_name, wrong};

/// Connect timeout. Three lost SYN packets take 7 seconds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Server, database, and user. Calls with equal settings share connections.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PostgresSettings {
    pub(super) config: Config,
    pub(super) verify: Verify,
    /// File with trusted CA certificates, instead of the system's.
    pub(super) root_cert: Option<String>,
}

/// Shows only the address, and no password.
impl std::fmt::Debug for PostgresSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.address())
    }
}

impl PostgresSettings {
    pub(crate) fn read(settings: &Map) -> Result<Self, Failure> {
        let mut mode = text(settings, "sslmode")?;
        let mut root_cert = text(settings, "sslrootcert")?;
        let mut config = match text(settings, "connection")? {
            Some(url) => parse(&url, &mut mode, &mut root_cert)?,
            None => Config::new(),
        };
        if let Some(host) = text(settings, "host")? {
            replace_host(&mut config, &host);
        } else if config.get_hosts().is_empty() {
            return Err(wrong(
                "a postgres step needs `auth`, a `connection` such as \
                 \"postgres://user@host/database\", or `host`, `user` and `database`",
            ));
        }
        if let Some(port) = port(settings)? {
            config = with_port(&config, port);
        }
        if let Some(user) = text(settings, "user")?.or(text(settings, "username")?) {
            config.user(user);
        } else if config.get_user().is_none()
            && let Some(user) = text(settings, "default_user")?
        {
            config.user(user);
        }
        if let Some(password) = text(settings, "password")? {
            config.password(password);
        } else if config.get_password().is_none()
            && let Some(password) = text(settings, "default_password")?
        {
            config.password(password);
        }
        if let Some(database) = text(settings, "database")?.or(text(settings, "dbname")?) {
            config.dbname(database);
        }
        if config.get_user().is_none() {
            return Err(wrong("a postgres step needs a `user`"));
        }
        let verify = verify(mode.as_deref(), &mut config)?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("noetl");
        }
        Ok(Self { config, verify, root_cert })
    }

    /// Returns the address of the server, for messages.
    pub(super) fn address(&self) -> String {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            #[cfg(unix)]
            Some(Host::Unix(path)) => path.display().to_string(),
            None => "the server".to_owned(),
        };
        match self.config.get_ports().first() {
            Some(port) => format!("{host}:{port}"),
            None => host,
        }
    }
}

/// Parses a connection string, and extracts the parameters that the driver doesn't handle.
fn parse(
    url: &str,
    mode: &mut Option<String>,
    root_cert: &mut Option<String>,
) -> Result<Config, Failure> {
    let (base, query) = match url.split_once('?') {
        Some((base, query)) if url.contains("://") => (base, query),
        _ => (url, ""),
    };
    // Stored addresses often use the scheme of SQLAlchemy.
    let base = match base.split_once("://") {
        Some((scheme, rest)) if scheme.starts_with("postgresql+") => format!("postgresql://{rest}"),
        _ => base.to_owned(),
    };
    let mut pairs = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("sslmode", value)) => *mode = mode.take().or(Some(value.to_owned())),
            Some(("sslrootcert", value)) => {
                *root_cert = root_cert.take().or(Some(value.to_owned()));
            }
            _ => pairs.push(pair),
        }
    }
    let text = match pairs.is_empty() {
        true => base,
        false => format!("{base}?{}", pairs.join("&")),
    };
    // The driver's error names only keys; the text itself may contain a password.
    Config::from_str(&text)
        .map_err(|error| wrong(format!("`connection` cannot be read: {}", reason(&error))))
}

fn reason(error: &tokio_postgres::Error) -> String {
    use std::error::Error as _;
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Replaces the host. The driver can only add hosts, so the other settings are copied.
fn replace_host(config: &mut Config, host: &str) {
    let mut other = Config::new();
    copy(config, &mut other);
    match host.starts_with('/') {
        true => other.host_path(host),
        false => other.host(host),
    };
    for port in config.get_ports().iter().take(1) {
        other.port(*port);
    }
    *config = other;
}

fn with_port(config: &Config, port: u16) -> Config {
    let mut other = Config::new();
    copy(config, &mut other);
    for host in config.get_hosts() {
        match host {
            Host::Tcp(host) => other.host(host.clone()),
            #[cfg(unix)]
            Host::Unix(path) => other.host_path(path),
        };
    }
    other.port(port);
    other
}

fn copy(from: &Config, to: &mut Config) {
    if let Some(user) = from.get_user() {
        to.user(user);
    }
    if let Some(password) = from.get_password() {
        to.password(password);
    }
    if let Some(database) = from.get_dbname() {
        to.dbname(database);
    }
    if let Some(options) = from.get_options() {
        to.options(options);
    }
    if let Some(name) = from.get_application_name() {
        to.application_name(name);
    }
    if let Some(timeout) = from.get_connect_timeout() {
        to.connect_timeout(*timeout);
    }
    to.target_session_attrs(from.get_target_session_attrs());
}

fn verify(mode: Option<&str>, config: &mut Config) -> Result<Verify, Failure> {
    let (mode, verify) = match mode.unwrap_or("prefer") {
        "disable" => (SslMode::Disable, Verify::Nothing),
        "allow" | "prefer" => (SslMode::Prefer, Verify::Nothing),
        "require" => (SslMode::Require, Verify::Nothing),
        "verify-ca" => (SslMode::Require, Verify::Chain),
        "verify-full" => (SslMode::Require, Verify::Name),
        other => {
            return Err(wrong(format!(
                "`sslmode` must be disable, prefer, require, verify-ca or verify-full, not '{other}'"
            )));
        }
    };
    config.ssl_mode(mode);
    Ok(verify)
}

fn port(settings: &Map) -> Result<Option<u16>, Failure> {
    match settings.get("port") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match plain(value).trim().parse() {
            Ok(port) if port > 0 => Ok(Some(port)),
            _ => Err(wrong(format!("`port` must be a number from 1 to 65535, not {value}"))),
        },
    }
}

/// Returns a text setting, which may also be a number, such as a database name of digits.
fn text(settings: &Map, key: &str) -> Result<Option<String>, Failure> {
    match settings.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value @ (Value::String(_) | Value::Number(_))) => {
            Ok(Some(plain(value)).filter(|text| !text.is_empty()))
        }
        Some(other) => Err(wrong(format!("`{key}` must be a text, not {}", type_name(other)))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<PostgresSettings, String> {
        let Value::Object(map) = value else { unreachable!() };
        PostgresSettings::read(&map).map_err(|failure| failure.message)
    }

    #[test]
    fn settings_override_parts_of_the_address() {
        let settings = read(json!({
            "connection": "postgresql+psycopg://u:p@h:5433/d?sslmode=verify-full",
            "host": "other", "port": "6000", "database": 12, "default_user": "x",
        }))
        .unwrap();
        assert_eq!(settings.config.get_hosts(), [Host::Tcp("other".into())]);
        assert_eq!(settings.config.get_ports(), [6000]);
        assert_eq!(settings.config.get_user(), Some("u"));
        assert_eq!(settings.config.get_password(), Some(b"p".as_slice()));
        assert_eq!(settings.config.get_dbname(), Some("12"));
        assert_eq!(settings.verify, Verify::Name);
        assert_eq!(settings.address(), "other:6000");
    }

    #[test]
    fn defaults_fill_missing_parts_of_an_address() {
        let settings = read(json!({
            "connection": "postgres://h/d", "default_user": "u", "default_password": "p",
        }))
        .unwrap();
        assert_eq!(settings.config.get_user(), Some("u"));
        assert_eq!(settings.config.get_password(), Some(b"p".as_slice()));
    }

    #[test]
    fn errors_of_settings_contain_no_secrets() {
        let failure = |value| read(value).unwrap_err();
        assert!(failure(json!({})).contains("needs `auth`"));
        assert!(failure(json!({"host": "h"})).contains("`user`"));
        assert!(failure(json!({"host": "h", "user": "u", "port": 0})).contains("`port`"));
        assert!(failure(json!({"host": "h", "user": "u", "sslmode": "yes"})).contains("`sslmode`"));
        assert!(failure(json!({"host": ["h"]})).contains("`host` must be a text, not a list"));
        let failure = failure(json!({"connection": "postgres://u:hunter2@h/d?nonsense=1"}));
        assert!(failure.contains("`connection`") && !failure.contains("hunter2"), "{failure}");
    }
}
