//! Settings of an MQTT source: broker, credentials, and topics.

use noetl_model::{Map, Value};
use rumqttc::{QoS, Transport};

use super::tunnel;
use crate::source::{SourceError, name_of, number, text};

/// Default session expiry in seconds: 30 days. The broker discards the session of a client that
/// stays disconnected for longer.
const SESSION_SECS: u64 = 30 * 24 * 3600;

pub(super) struct MqttSettings {
    pub(super) host: String,
    pub(super) port: u16,
    is_encrypted: bool,
    pub(super) login: Option<(String, String)>,
    pub(super) client_id: String,
    pub(super) topics: Vec<String>,
    pub(super) qos: QoS,
    pub(super) version: u64,
    pub(super) session_secs: u32,
}

fn wrong(message: impl Into<String>) -> SourceError {
    SourceError::Settings(message.into())
}

impl MqttSettings {
    pub(super) fn read(settings: &Map, path: &str) -> Result<Self, SourceError> {
        let port = match settings.get("port") {
            Some(Value::String(port)) => Some(port.clone()),
            Some(Value::Number(port)) => Some(port.to_string()),
            _ => None,
        };
        let url = match (text(settings, "url")?, text(settings, "host")?) {
            (Some(url), _) => url.to_owned(),
            (None, Some(host)) => format!("mqtt://{host}:{}", port.as_deref().unwrap_or("1883")),
            (None, None) => {
                let needed = "an mqtt source needs `url`, such as \"mqtt://host:1883\", or `auth`";
                return Err(wrong(needed));
            }
        };
        let (host, port, is_encrypted) = address(&url)?;
        let user = text(settings, "user")?;
        let password = text(settings, "password")?.unwrap_or_default();
        let topics = match settings.get("topic") {
            Some(Value::String(topic)) => vec![topic.clone()],
            Some(Value::Array(topics)) => {
                let texts = topics.iter().map(|topic| topic.as_str().map(str::to_owned));
                let texts: Option<Vec<_>> = texts.collect();
                texts.ok_or_else(|| wrong("`topic` must list texts"))?
            }
            _ => Vec::new(),
        };
        if topics.is_empty() {
            return Err(wrong("an mqtt source needs `topic`, such as \"orders/#\""));
        }
        if let Some(topic) = topics.iter().find(|topic| !rumqttc::valid_filter(topic)) {
            let right =
                "`+` stands for one level and `#` for all below, each alone between slashes";
            return Err(wrong(format!("`topic`: '{topic}' is no filter; {right}")));
        }
        let qos = match number(settings, "qos")?.unwrap_or(1) {
            0 => QoS::AtMostOnce,
            1 => QoS::AtLeastOnce,
            2 => QoS::ExactlyOnce,
            other => return Err(wrong(format!("`qos` must be 0, 1 or 2, not {other}"))),
        };
        let session = number(settings, "session_secs")?.unwrap_or(SESSION_SECS);
        let own = text(settings, "client_id")?;
        Ok(Self {
            host,
            port,
            is_encrypted,
            login: user.map(|user| (user.to_owned(), password.to_owned())),
            client_id: own.map_or_else(|| name_of(path), str::to_owned),
            topics,
            qos,
            version: number(settings, "version")?.unwrap_or(5),
            session_secs: u32::try_from(session).unwrap_or(u32::MAX),
        })
    }

    /// Returns the address that the client connects to, and the transport.
    pub(super) async fn way(&self) -> Result<(String, Transport), SourceError> {
        if !self.is_encrypted {
            return Ok((self.host.clone(), Transport::tcp()));
        }
        let path = tunnel::open(&self.host, self.port).await?;
        Ok((tunnel::address(&path), Transport::unix()))
    }
}

/// Parses a URL. Returns the host, the port, and whether the connection uses TLS.
fn address(url: &str) -> Result<(String, u16, bool), SourceError> {
    // Credentials are separate settings, and the message must not repeat a password.
    let right = "`url` must be mqtt://host[:port] or mqtts://host[:port]; \
                 `user` and `password` are keys of their own, or a credential's";
    let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong(right))?;
    let is_encrypted = match scheme {
        "mqtt" | "tcp" => false,
        "mqtts" | "ssl" => true,
        _ => return Err(wrong(right)),
    };
    let rest = rest.trim_end_matches('/');
    if rest.contains(['/', '@', '?']) {
        return Err(wrong(right));
    }
    let usual = if is_encrypted { 8883 } else { 1883 };
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => {
            (host, port.parse().map_err(|_| wrong(right))?)
        }
        _ => (rest, usual),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() {
        return Err(wrong(right));
    }
    Ok((host.to_owned(), port, is_encrypted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_consists_of_a_host_and_a_port() {
        let of = |url: &str| address(url).map(|(host, port, tls)| format!("{host} {port} {tls}"));
        assert_eq!(of("mqtt://h"), Ok("h 1883 false".to_owned()));
        assert_eq!(of("mqtts://h/"), Ok("h 8883 true".to_owned()));
        assert_eq!(of("tcp://[::1]:99"), Ok("::1 99 false".to_owned()));
        assert_eq!(of("ssl://[::1]"), Ok("::1 8883 true".to_owned()));
        for none in ["h", "http://h", "mqtt://", "mqtt://u:hunter2@h", "mqtt://h:x"] {
            let error = of(none).unwrap_err().to_string();
            assert!(error.contains("mqtts://host") && !error.contains("hunter2"), "{error}");
        }
    }
}
