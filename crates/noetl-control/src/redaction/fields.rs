//! Which fields of a credential are secret.

use noetl_model::{Map, Value};

/// How long a value must be to be looked for, in bytes.
pub const LENGTH_MIN: usize = 8;

/// How deep fields are looked for; deeper ones count as one text.
const DEPTH_MAX: usize = 8;

/// Fields that say where and as whom, and are no secret. Everything else is one.
const PLAIN: [&str; 90] = [
    "account",
    "account_id",
    "address",
    "api_version",
    "app_name",
    "application_name",
    "audience",
    "auth_uri",
    "auth_url",
    "authority",
    "bucket",
    "cache",
    "channel",
    "client_email",
    "client_id",
    "client_name",
    "cluster",
    "currency",
    "database",
    "db",
    "db_host",
    "db_name",
    "db_path",
    "db_port",
    "db_schema",
    "db_user",
    "dbname",
    "description",
    "domain",
    "driver",
    "email",
    "env",
    "environment",
    "expires_at",
    "expires_in",
    "grant_type",
    "header",
    "header_name",
    "host",
    "hostname",
    "in",
    "issuer",
    "key_id",
    "kind",
    "label",
    "language",
    "locale",
    "location",
    "login",
    "method",
    "mode",
    "name",
    "namespace",
    "nats_host",
    "nats_port",
    "nats_user",
    "notes",
    "org",
    "organization",
    "owner",
    "param",
    "path",
    "port",
    "project",
    "project_id",
    "protocol",
    "query",
    "region",
    "role",
    "schema",
    "scope",
    "scopes",
    "ssl_mode",
    "sslmode",
    "sslrootcert",
    "stage",
    "state",
    "status",
    "subject",
    "team",
    "tenant",
    "tenant_id",
    "timezone",
    "token_type",
    "type",
    "user",
    "username",
    "version",
    "warehouse",
    "workspace",
];

/// Fields that hold an address, of which only what stands before the host is secret.
const ADDRESSES: [&str; 15] = [
    "base_url",
    "connection",
    "connection_string",
    "db_url",
    "dsn",
    "endpoint",
    "jdbc_url",
    "nats_url",
    "redirect_uri",
    "server",
    "servers",
    "token_uri",
    "token_url",
    "uri",
    "url",
];

/// The secret values of what an alias holds, each with its field; nested ones by dotted path.
pub(super) fn secret_fields(data: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    match data {
        Value::Object(map) => collect(map, "", 1, &mut found),
        other => add("value", "value", other, 1, &mut found),
    }
    found
}

/// The secret fields whose values are too short to be looked for.
pub fn short_fields(data: &Value) -> Vec<String> {
    let fields = secret_fields(data).into_iter();
    fields
        .filter(|(_, value)| !value.is_empty() && value.len() < LENGTH_MIN)
        .map(|(field, _)| field)
        .collect()
}

fn collect(map: &Map, above: &str, depth: usize, found: &mut Vec<(String, String)>) {
    for (name, value) in map {
        let field = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        add(&field, name, value, depth, found);
    }
}

fn add(field: &str, name: &str, value: &Value, depth: usize, found: &mut Vec<(String, String)>) {
    let name = name.to_ascii_lowercase().replace('-', "_");
    match value {
        Value::Object(map) if depth < DEPTH_MAX => collect(map, field, depth + 1, found),
        Value::Array(items) if depth < DEPTH_MAX => {
            for (index, item) in items.iter().enumerate() {
                add(&format!("{field}.{index}"), &name, item, depth + 1, found);
            }
        }
        _ if PLAIN.contains(&name.as_str()) => {}
        Value::Null | Value::Bool(_) => {}
        Value::String(text) if ADDRESSES.contains(&name.as_str()) => {
            for secret in secrets_of_address(text) {
                found.push((field.to_owned(), secret));
            }
        }
        Value::String(text) => found.push((field.to_owned(), text.clone())),
        // A number that stands where a password does is one; a short one is most likely a count.
        Value::Number(number) => {
            let text = number.to_string();
            if text.len() >= LENGTH_MIN {
                found.push((field.to_owned(), text));
            }
        }
        Value::Object(_) | Value::Array(_) => found.push((field.to_owned(), value.to_string())),
    }
}

/// What is secret in an address: the password before its host or among its words, and then the
/// whole of it.
fn secrets_of_address(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    if let Some((_, rest)) = text.split_once("://") {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let password = authority.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
        // A password may hold an unencoded slash; then the host is after the last `@` of all.
        let password =
            password.or_else(|| rest.rsplit_once('@').and_then(|(u, _)| u.split_once(':')));
        found.extend(password.map(|(_, password)| password.to_owned()));
    }
    for word in text.split([' ', ';', '&', '?']) {
        if let Some((name, value)) = word.split_once('=')
            && matches!(name.trim().to_ascii_lowercase().as_str(), "password" | "pwd" | "token")
        {
            found.push(value.trim_matches(['\'', '"']).to_owned());
        }
    }
    found.retain(|secret| !secret.is_empty());
    let decoded: Vec<String> = found.iter().filter_map(|secret| percent_decoded(secret)).collect();
    found.extend(decoded);
    if !found.is_empty() {
        found.push(text.to_owned());
    }
    found
}

/// A text without its percent signs, if it has any.
fn percent_decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}
