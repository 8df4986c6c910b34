//! Merges a credential into the settings of a source.
//!
//! Settings in the document take precedence. Source kinds that also exist as tools accept the same
//! credentials as the tool; the fields of the other kinds are listed here.

use noetl_model::{Map, Value};
use noetl_tools::{ToolCredential, auth};

/// Settings with the credential fields that supply them. The first field present wins.
type Fields = &'static [(&'static str, &'static [&'static str])];

const USER: &[&str] = &["user", "username"];

const REDIS: Fields = &[
    ("url", &["url", "uri", "redis_url"]),
    ("host", &["host", "redis_host"]),
    ("port", &["port", "redis_port"]),
    ("user", USER),
    ("password", &["password", "redis_password"]),
];

const MQTT: Fields = &[
    ("url", &["url", "uri", "mqtt_url"]),
    ("host", &["host", "mqtt_host"]),
    ("port", &["port", "mqtt_port"]),
    ("user", USER),
    ("password", &["password", "mqtt_password"]),
    ("client_id", &["client_id"]),
];

const KAFKA: Fields = &[
    ("brokers", &["brokers", "bootstrap_servers", "url"]),
    ("user", USER),
    ("password", &["password"]),
    ("mechanism", &["mechanism", "sasl_mechanism"]),
    ("tls", &["tls", "ssl"]),
    ("ca", &["ca", "ca_pem", "ssl_ca"]),
    ("certificate", &["certificate", "client_certificate", "cert", "ssl_certificate"]),
    ("private_key", &["private_key", "client_key", "key", "ssl_key"]),
    ("token_url", &["token_url", "token_uri", "token_endpoint"]),
    ("client_id", &["client_id"]),
    ("client_secret", &["client_secret"]),
    ("scope", &["scope"]),
    ("audience", &["audience"]),
    ("token", &["token", "access_token"]),
];

const PUBSUB: Fields = &[
    ("client_email", &["client_email"]),
    ("private_key", &["private_key"]),
    ("private_key_id", &["private_key_id"]),
    ("token_uri", &["token_uri"]),
    ("project", &["project", "project_id"]),
    ("token", &["token", "access_token"]),
    ("endpoint", &["endpoint"]),
];

/// Adds the fields of `credential` to the settings of a source of `kind`. Returns a message if the
/// credential's type doesn't fit.
pub(crate) fn merge_into(
    kind: &str,
    settings: &mut Map,
    credential: &ToolCredential,
) -> Result<(), String> {
    let (fields, types): (Fields, &[&str]) = match kind {
        "redis" => (REDIS, &["redis"]),
        "mqtt" => (MQTT, &["mqtt"]),
        "kafka" => (KAFKA, &["kafka"]),
        "pubsub" => (
            PUBSUB,
            &[
                "pubsub",
                "gcp",
                "google",
                "google_service_account",
                "service_account",
                "gcp_service_account",
            ],
        ),
        "postgres" => {
            // The tool calls a complete URL `connection`.
            if let Some(url) = settings.remove("url") {
                settings.insert("connection".to_owned(), url);
            }
            return auth::inject(kind, settings, credential).map_err(|failure| failure.message);
        }
        _ => return auth::inject(kind, settings, credential).map_err(|failure| failure.message),
    };
    let actual = credential.kind.to_ascii_lowercase().replace('-', "_");
    if !types.contains(&actual.as_str()) {
        let expected = types[0];
        return Err(format!(
            "credential '{}' is of type '{actual}', which a {kind} source cannot use; it takes '{expected}'",
            credential.name
        ));
    }
    let data = whole(credential);
    for (setting, names) in fields {
        let is_given = settings.get(*setting).is_some_and(|value| !value.is_null());
        let field = names.iter().find_map(|name| data.get(*name));
        if let (false, Some(field)) = (is_given, field.filter(|field| !field.is_null())) {
            settings.insert((*setting).to_owned(), field.clone());
        }
    }
    Ok(())
}

/// Returns the fields of a credential, including those of a key file stored as JSON in one of its
/// fields.
fn whole(credential: &ToolCredential) -> Map {
    let mut data = credential.data.clone();
    for name in ["service_account_json", "service_account", "key_file", "json", "value"] {
        let parsed = match credential.data.get(name) {
            Some(Value::String(text)) => serde_json::from_str(text).ok(),
            Some(Value::Object(fields)) => Some(fields.clone()),
            _ => None,
        };
        for (field, value) in parsed.unwrap_or_default() {
            data.entry(field).or_insert(value);
        }
    }
    data
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map {
        let Value::Object(map) = value else { panic!("a map") };
        map
    }

    fn laid(kind: &str, settings: Value, of: &str, data: Value) -> Result<Value, String> {
        let mut settings = map(settings);
        let credential =
            ToolCredential { name: "prod".to_owned(), kind: of.to_owned(), data: map(data) };
        merge_into(kind, &mut settings, &credential).map(|()| Value::Object(settings))
    }

    #[test]
    fn the_document_overrides_its_credential() {
        let data = json!({"url": "redis://b", "username": "u", "password": "p", "other": 1});
        assert_eq!(
            laid("redis", json!({"url": "redis://a", "user": null}), "redis", data),
            Ok(json!({"url": "redis://a", "user": "u", "password": "p"}))
        );
        let data = json!({"brokers": ["a:9092"], "sasl_mechanism": "PLAIN"});
        let fields = json!({"brokers": ["a:9092"], "mechanism": "PLAIN"});
        assert_eq!(laid("kafka", json!({}), "Kafka", data), Ok(fields));
    }

    #[test]
    fn a_postgres_url_in_the_document_ignores_the_host_of_its_credential() {
        let data = json!({"host": "b", "user": "u", "password": "p"});
        let settings = json!({"url": "postgres://a/d"});
        let laid = laid("postgres", settings, "postgres", data).unwrap();
        assert_eq!(laid["connection"], "postgres://a/d");
        assert_eq!((laid.get("host"), &laid["default_password"]), (None, &json!("p")));
    }

    #[test]
    fn a_key_file_is_read_from_every_credential_field() {
        let file = r#"{"client_email": "a@b", "private_key": "k", "project_id": "p"}"#;
        for data in [
            json!({"service_account_json": file}),
            json!({"value": file}),
            json!({"client_email": "a@b", "private_key": "k", "project_id": "p"}),
        ] {
            let laid = laid("pubsub", json!({}), "gcp", data).unwrap();
            assert_eq!(laid, json!({"client_email": "a@b", "private_key": "k", "project": "p"}));
        }
    }

    #[test]
    fn a_credential_of_another_type_is_rejected_with_its_name() {
        let refused = laid("mqtt", json!({}), "nats", json!({})).unwrap_err();
        assert!(refused.contains("'prod'") && refused.contains("takes 'mqtt'"), "{refused}");
    }
}
