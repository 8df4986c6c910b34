//! Settings of a Kafka source: brokers, credentials, topics, and group.

use std::fmt;
use std::sync::Arc;

use noetl_egress::EgressPolicy;
use noetl_model::{Map, Value};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use super::sasl::SaslAuth;
use super::wrong;
use crate::source::{SourceError, name_of, text};

/// Default port of a broker.
const PORT: u16 = 9092;

#[derive(Clone)]
pub(super) struct KafkaSettings {
    /// Bootstrap brokers, which provide the addresses of all others.
    pub(super) brokers: Vec<Address>,
    pub(super) topics: Vec<Arc<str>>,
    pub(super) group: String,
    /// Whether to start at the end of the topics when the group has no committed offset. Default:
    /// `false`.
    pub(super) is_from_new: bool,
    pub(super) tls: Option<Arc<ClientConfig>>,
    pub(super) login: Option<SaslAuth>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.host, self.port)
    }
}

impl KafkaSettings {
    pub(super) fn read(
        settings: &Map,
        path: &str,
        egress: &EgressPolicy,
    ) -> Result<Self, SourceError> {
        let brokers = match texts(settings, "brokers")? {
            brokers if brokers.is_empty() => texts(settings, "url")?,
            brokers => brokers,
        };
        if brokers.is_empty() {
            let needed = "a kafka source needs `brokers`, such as \"host:9092\", or `auth`";
            return Err(wrong(needed));
        }
        let topics = texts(settings, "topic")?;
        if topics.is_empty() {
            return Err(wrong("a kafka source needs `topic`, such as \"orders\""));
        }
        let group = text(settings, "group")?;
        Ok(Self {
            brokers: brokers.iter().map(|broker| address(broker)).collect::<Result<_, _>>()?,
            topics: topics.into_iter().map(Arc::from).collect(),
            group: group.map_or_else(|| name_of(path), str::to_owned),
            is_from_new: text(settings, "from")? == Some("new"),
            tls: tls(settings)?,
            login: SaslAuth::read(settings, egress)?,
        })
    }
}

fn tls(settings: &Map) -> Result<Option<Arc<ClientConfig>>, SourceError> {
    let ca = text(settings, "ca")?;
    let own = (text(settings, "certificate")?, text(settings, "private_key")?);
    match settings.get("tls") {
        Some(Value::Bool(true)) => {}
        None | Some(Value::Null) if ca.is_some() || own.0.is_some() => {}
        None | Some(Value::Bool(false) | Value::Null) => return Ok(None),
        Some(_) => return Err(wrong("`tls` must be true or false")),
    }
    // Fails only if another part of the program has installed a provider, which works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut roots = RootCertStore::empty();
    match ca {
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Some(pem) => {
            if roots.add_parsable_certificates(certificates("ca", pem)?).0 == 0 {
                return Err(wrong("`ca` must hold certificates as PEM, whole, not a path"));
            }
        }
    }
    let config = ClientConfig::builder().with_root_certificates(roots);
    let config = match own {
        (None, None) => config.with_no_client_auth(),
        (Some(chain), Some(key)) => {
            let chain = certificates("certificate", chain)?;
            // Errors never contain the key.
            let right = "`private_key` must be the key of `certificate` as PEM, whole, not a path";
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| wrong(right))?;
            config.with_client_auth_cert(chain, key).map_err(|_| wrong(right))?
        }
        (Some(_), None) | (None, Some(_)) => {
            return Err(wrong("a client needs both `certificate` and `private_key`"));
        }
    };
    Ok(Some(Arc::new(config)))
}

fn certificates(key: &str, pem: &str) -> Result<Vec<CertificateDer<'static>>, SourceError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let certificates =
        certificates.map_err(|_| wrong(format!("`{key}` contains an invalid PEM certificate")))?;
    match certificates.is_empty() {
        true => Err(wrong(format!("`{key}` must hold certificates as PEM, whole, not a path"))),
        false => Ok(certificates),
    }
}

/// Returns a setting that is a list of strings or a comma-separated string.
fn texts(settings: &Map, key: &str) -> Result<Vec<String>, SourceError> {
    let split = |text: &str| -> Vec<String> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(str::to_owned).collect()
    };
    match settings.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(split(text)),
        Some(Value::Array(items)) => {
            let mut list = Vec::new();
            for item in items {
                let item = item.as_str();
                list.extend(split(item.ok_or_else(|| wrong(format!("`{key}` must list texts")))?));
            }
            Ok(list)
        }
        Some(_) => Err(wrong(format!("`{key}` must be a text, or a list of texts"))),
    }
}

fn address(broker: &str) -> Result<Address, SourceError> {
    let right =
        || wrong(format!("`brokers`: '{broker}' is not host:port; `user` and `tls` are keys"));
    if broker.contains(['/', '@']) {
        // The value may contain a password.
        return Err(wrong("`brokers` must be host:port each, without a scheme or a user"));
    }
    let (host, port) = match broker.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| right())?),
        _ => (broker, PORT),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() {
        return Err(right());
    }
    Ok(Address { host: host.to_owned(), port })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(settings: Value) -> Result<KafkaSettings, String> {
        let Value::Object(settings) = settings else { panic!("a map") };
        KafkaSettings::read(&settings, "sub/orders", &EgressPolicy::default())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn brokers_and_topics_accept_one_value_or_several() {
        let settings = read(json!({"brokers": "a, b:1,[::1]:2", "topic": ["x", "y,z"]})).unwrap();
        let brokers: Vec<String> = settings.brokers.iter().map(Address::to_string).collect();
        assert_eq!(brokers, ["a:9092", "b:1", "::1:2"]);
        assert_eq!(
            settings.topics.iter().map(|topic| &**topic).collect::<Vec<_>>(),
            ["x", "y", "z"]
        );
        assert_eq!(settings.group, "noetl_sub_orders");
        assert!(settings.login.is_none() && settings.tls.is_none() && !settings.is_from_new);
    }

    #[test]
    fn errors_of_settings_name_a_valid_form() {
        let with = |more: Value| {
            let mut all = json!({"brokers": "a", "topic": "t"});
            for (key, value) in more.as_object().unwrap() {
                all[key] = value.clone();
            }
            read(all).err().unwrap_or_default()
        };
        assert!(read(json!({"topic": "t"})).is_err_and(|text| text.contains("`brokers`")));
        assert!(read(json!({"brokers": "a"})).is_err_and(|text| text.contains("`topic`")));
        assert!(with(json!({"brokers": "kafka://u:hunter2@h"})).contains("host:port"));
        assert!(!with(json!({"brokers": "kafka://u:hunter2@h"})).contains("hunter2"));
        assert!(with(json!({"brokers": "h:x"})).contains("'h:x'"));
        assert!(with(json!({"mechanism": "PLAIN"})).contains("needs `user`"));
        assert!(with(json!({"user": "u", "mechanism": "GSSAPI"})).contains("SCRAM-SHA-512"));
        assert!(with(json!({"ca": "/etc/ca.pem"})).contains("not a path"));
        assert!(with(json!({"tls": "yes"})).contains("true or false"));
        assert!(with(json!({"certificate": "c"})).contains("`private_key`"));
        assert!(with(json!({"certificate": "c", "private_key": "k"})).contains("not a path"));
        let bearer = json!({"mechanism": "OAUTHBEARER"});
        assert!(with(bearer).contains("needs `token_url`"));
        let inside = "http://169.254.169.254/token";
        let bearer = json!({"mechanism": "OAUTHBEARER", "token_url": inside});
        assert!(with(bearer).contains("`token_url`: "), "the egress policy applies");
        let login = read(json!({"brokers": "a", "topic": "t", "user": "u"})).unwrap().login;
        assert_eq!(login.unwrap().mechanism(), "PLAIN");
    }
}
