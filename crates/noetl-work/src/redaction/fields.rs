//! Finds the secret fields of a credential: all that its type does not declare public.

use noetl_model::{Map, Value};

use super::forms::parts;

/// Shortest value that is redacted, in bytes.
pub const LENGTH_MIN: usize = 8;

/// Maximum depth of the search. Deeper values count as one text.
const DEPTH_MAX: usize = 8;

/// Connection fields, public in every known type.
const CONNECTION: [&str; 17] = [
    "database",
    "db",
    "db_host",
    "db_name",
    "db_port",
    "db_schema",
    "db_user",
    "dbname",
    "host",
    "hostname",
    "login",
    "nats_host",
    "nats_port",
    "nats_user",
    "port",
    "user",
    "username",
];

/// URL and connection-string fields of known types. Public unless they contain a password; then
/// both the password and the whole value are secret.
const ADDRESSES: [&str; 14] = [
    "base_url",
    "connection",
    "connection_string",
    "db_url",
    "dsn",
    "endpoint",
    "jdbc_url",
    "nats_url",
    "server",
    "servers",
    "token_uri",
    "token_url",
    "uri",
    "url",
];

/// Credential types and their public fields besides [`CONNECTION`].
const TYPES: [(&str, &[&str]); 24] = [
    ("api_key", &["header", "header_name", "in", "param"]),
    ("basic", &[]),
    ("bearer", &["header", "token_type"]),
    ("duckdb", &["db_path", "path"]),
    ("gcp", GOOGLE),
    ("gcs", GOOGLE),
    ("hmac", &["bucket", "region"]),
    ("http", &[]),
    ("kafka", &["client_id", "mechanism", "protocol"]),
    ("mqtt", &["client_id"]),
    ("mssql", SQL),
    ("mysql", SQL),
    ("nats", &[]),
    ("oauth2", &["audience", "client_id", "grant_type", "scope", "scopes", "token_type"]),
    ("oauth2_client_credentials", &["audience", "client_id", "grant_type", "scope", "token_type"]),
    ("postgres", SQL),
    ("postgresql", SQL),
    ("pubsub", GOOGLE),
    ("redis", &[]),
    ("redis_streams", &[]),
    ("s3", &["bucket", "region"]),
    ("service_account", GOOGLE),
    ("snowflake", &["account", "region", "role", "schema", "warehouse"]),
    ("sqlite", &["db_path", "path"]),
];

const SQL: &[&str] =
    &["application_name", "driver", "schema", "ssl_mode", "sslmode", "sslrootcert"];

const GOOGLE: &[&str] = &[
    "auth_uri",
    "bucket",
    "client_email",
    "client_id",
    "project",
    "project_id",
    "region",
    "scope",
    "scopes",
    "token_uri",
    "type",
    "universe_domain",
];

/// A secret value and its field; nested fields by dotted path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SecretField {
    pub(super) field: String,
    pub(super) value: String,
}

/// Returns the secret values of a credential. Without a type, or with an unknown one, every field
/// is secret.
pub(super) fn secret_fields(kind: Option<&str>, data: &Value) -> Vec<SecretField> {
    let kind = kind.map(|kind| kind.trim().to_ascii_lowercase());
    let public = TYPES.iter().find(|(name, _)| Some(*name) == kind.as_deref());
    let mut search =
        SecretFieldSearch { public: public.map(|(_, fields)| *fields), found: Vec::new() };
    match data {
        Value::Object(map) => search.collect(map, "", 1),
        other => search.add("value", "value", other, 1),
    }
    search.found
}

/// Returns the secret fields whose values are too short to be redacted.
pub fn short_fields(kind: Option<&str>, data: &Value) -> Vec<String> {
    let fields = secret_fields(kind, data).into_iter();
    fields
        .filter(|field| !field.value.is_empty() && field.value.len() < LENGTH_MIN)
        .map(|field| field.field)
        .collect()
}

/// Returns the names of the secret fields that are redacted.
pub fn secret_names(kind: Option<&str>, data: &Value) -> Vec<String> {
    let fields = secret_fields(kind, data).into_iter();
    fields.filter(|field| field.value.len() >= LENGTH_MIN).map(|field| field.field).collect()
}

struct SecretFieldSearch {
    /// Public fields of the type, if it is known.
    public: Option<&'static [&'static str]>,
    found: Vec<SecretField>,
}

impl SecretFieldSearch {
    fn collect(&mut self, map: &Map, above: &str, depth: usize) {
        for (name, value) in map {
            let field = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
            self.add(&field, name, value, depth);
        }
    }

    fn add(&mut self, field: &str, name: &str, value: &Value, depth: usize) {
        let name = name.to_ascii_lowercase().replace('-', "_");
        match value {
            Value::Object(map) if depth < DEPTH_MAX => self.collect(map, field, depth + 1),
            Value::Array(items) if depth < DEPTH_MAX => {
                for (index, item) in items.iter().enumerate() {
                    self.add(&format!("{field}.{index}"), &name, item, depth + 1);
                }
            }
            _ if self.is_public(&name) => {}
            Value::Null | Value::Bool(_) => {}
            Value::String(text) if self.is_plain_address(&name, text) => {}
            Value::String(text) => self.push(field, text.clone()),
            // A long number may be a password; a short one is most likely a count.
            Value::Number(number) => {
                let text = number.to_string();
                if text.len() >= LENGTH_MIN {
                    self.push(field, text);
                }
            }
            Value::Object(_) | Value::Array(_) => self.push(field, value.to_string()),
        }
    }

    fn is_public(&self, name: &str) -> bool {
        self.public.is_some_and(|fields| CONNECTION.contains(&name) || fields.contains(&name))
    }

    fn is_plain_address(&self, name: &str, text: &str) -> bool {
        self.public.is_some() && ADDRESSES.contains(&name) && parts(text).is_empty()
    }

    fn push(&mut self, field: &str, value: String) {
        self.found.push(SecretField { field: field.to_owned(), value });
    }
}
