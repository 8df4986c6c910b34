//! Mapping of credential fields to settings, by type of credential.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use noetl_model::{Failure, Map, Value};

use crate::ToolCredential;
use crate::config::{plain, wrong};

/// Settings, with the names that their fields have in stored credentials.
const POSTGRES: [(&str, &[&str]); 6] = [
    ("host", &["host", "db_host", "hostname"]),
    ("port", &["port", "db_port"]),
    ("user", &["user", "username", "db_user"]),
    ("password", &["password", "db_password"]),
    ("database", &["database", "dbname", "db_name", "db"]),
    ("sslmode", &["sslmode", "ssl_mode"]),
];

const CONNECTION: [&str; 6] = ["connection", "connection_string", "dsn", "url", "uri", "db_url"];

pub(super) fn postgres(config: &mut Map, credential: &ToolCredential) {
    // Parts of the credential must not change a complete address of the step. Only the user and
    // password are added, as defaults.
    let has_own = is_set(config, "connection");
    for (setting, fields) in POSTGRES {
        if has_own && !matches!(setting, "user" | "password") {
            continue;
        }
        if let Some(value) = field(credential, fields) {
            let key = if has_own { format!("default_{setting}") } else { setting.to_owned() };
            fill(config, &key, value);
        }
    }
    for certificate in ["sslrootcert"] {
        if let Some(value) = field(credential, &[certificate]) {
            fill(config, certificate, value);
        }
    }
    if !has_own && let Some(value) = field(credential, &CONNECTION) {
        fill(config, "connection", value);
    }
}

pub(super) fn nats(config: &mut Map, credential: &ToolCredential) {
    const FIELDS: [(&str, &[&str]); 5] = [
        ("user", &["user", "username", "nats_user"]),
        ("password", &["password", "nats_password"]),
        ("token", &["token", "nats_token"]),
        ("creds", &["creds", "credentials"]),
        ("nkey", &["nkey", "seed"]),
    ];
    if !is_set(config, "url") && !is_set(config, "servers") {
        let address = field(credential, &["url", "servers", "nats_url"]);
        let host = field(credential, &["host", "nats_host"]).map(|host| plain(&host));
        let port = field(credential, &["port", "nats_port"]).map(|port| plain(&port));
        let made = host.map(|host| {
            let port = port.unwrap_or_else(|| "4222".to_owned());
            Value::String(format!("nats://{host}:{port}"))
        });
        if let Some(address) = address.or(made) {
            fill(config, "url", address);
        }
    }
    for (setting, fields) in FIELDS {
        if let Some(value) = field(credential, fields) {
            fill(config, setting, value);
        }
    }
}

pub(super) fn file(config: &mut Map, credential: &ToolCredential) {
    if is_set(config, "db_path") || is_set(config, "database") {
        return;
    }
    if let Some(path) = field(credential, &["db_path", "database", "path"]) {
        fill(config, "db_path", path);
    }
}

pub(super) fn bearer(config: &mut Map, credential: &ToolCredential) -> Result<(), Failure> {
    let fields = ["token", "access_token", "bearer_token", "value"];
    let token = required(credential, &fields)?;
    header(config, "Authorization", format!("Bearer {token}"))
}

pub(super) fn basic(config: &mut Map, credential: &ToolCredential) -> Result<(), Failure> {
    let user = required(credential, &["username", "user"])?;
    let password = required(credential, &["password"])?;
    let pair = STANDARD.encode(format!("{user}:{password}"));
    header(config, "Authorization", format!("Basic {pair}"))
}

pub(super) fn api_key(config: &mut Map, credential: &ToolCredential) -> Result<(), Failure> {
    let key = required(credential, &["value", "api_key", "apikey", "token"])?;
    let place = field(credential, &["in", "location"]).map(|place| plain(&place));
    match place.as_deref() {
        None | Some("header") => {
            let name = field(credential, &["header", "header_name", "name"]);
            let name = name.map_or_else(|| "X-API-Key".to_owned(), |name| plain(&name));
            header(config, &name, key)
        }
        Some("query") => {
            let name = field(credential, &["param", "query", "name"]);
            let name = name.map_or_else(|| "api_key".to_owned(), |name| plain(&name));
            match config.entry("params").or_insert(Value::Null) {
                params @ Value::Null => {
                    *params = Value::Object(Map::from_iter([(name, key.into())]));
                    Ok(())
                }
                Value::Object(params) => {
                    params.entry(name).or_insert_with(|| key.into());
                    Ok(())
                }
                _ => Err(wrong("`params` must be a map, so that the API key can be added to it")),
            }
        }
        Some(other) => Err(wrong(format!(
            "credential '{}': `in` must be 'header' or 'query', not '{other}'",
            credential.name
        ))),
    }
}

/// Adds a header unless the step sets one of that name, ignoring case.
fn header(config: &mut Map, name: &str, text: String) -> Result<(), Failure> {
    match config.entry("headers").or_insert(Value::Null) {
        headers @ Value::Null => {
            *headers = Value::Object(Map::from_iter([(name.to_owned(), text.into())]));
            Ok(())
        }
        Value::Object(headers) => {
            let has_own = headers
                .iter()
                .any(|(own, value)| own.eq_ignore_ascii_case(name) && !value.is_null());
            if !has_own {
                headers.insert(name.to_owned(), text.into());
            }
            Ok(())
        }
        _ => Err(wrong("`headers` must be a map")),
    }
}

fn is_set(config: &Map, key: &str) -> bool {
    config.get(key).is_some_and(|value| !value.is_null())
}

fn fill(config: &mut Map, key: &str, value: Value) {
    if !is_set(config, key) {
        config.insert(key.to_owned(), value);
    }
}

fn field(credential: &ToolCredential, names: &[&str]) -> Option<Value> {
    let first = names.iter().find_map(|name| credential.data.get(*name));
    first.filter(|value| !value.is_null() && *value != "").cloned()
}

fn required(credential: &ToolCredential, names: &[&str]) -> Result<String, Failure> {
    field(credential, names).map(|value| plain(&value)).ok_or_else(|| {
        wrong(format!(
            "credential '{}' of type '{}' has no `{}`",
            credential.name, credential.kind, names[0]
        ))
    })
}
