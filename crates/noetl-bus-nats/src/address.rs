//! Server addresses of a NATS cluster, with the credentials from their URLs.

use std::borrow::Cow;
use std::fmt;

use async_nats::ServerAddr;
use percent_encoding::percent_decode_str;

/// A text that is not the URL of a NATS server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("entry {entry} of the NATS URL is not nats://[user:password@]host[:port]")]
pub struct AddressError {
    /// Position of the invalid URL in the list, from 1.
    pub entry: usize,
}

/// Servers of one cluster, with the credentials from their URLs.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    servers: Vec<String>,
    credentials: NatsCredentials,
}

#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) enum NatsCredentials {
    #[default]
    None,
    Password {
        user: String,
        password: String,
    },
    Token(String),
}

impl Address {
    /// Parses one URL or a comma-separated list. The part before `@` is removed from the URL and
    /// used as credentials: a user and password, or a token alone. The first credentials found
    /// apply to all servers.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let mut address = Self { servers: Vec::new(), credentials: NatsCredentials::None };
        for (entry, url) in (1..).zip(text.split(',')) {
            let (server, credentials) = server(url.trim()).ok_or(AddressError { entry })?;
            if address.credentials == NatsCredentials::None {
                address.credentials = credentials;
            }
            address.servers.push(server);
        }
        Ok(address)
    }

    pub(crate) fn servers(&self) -> Vec<ServerAddr> {
        // `parse` has validated each of them.
        self.servers.iter().filter_map(|server| server.parse().ok()).collect()
    }

    pub(crate) fn credentials(&self) -> &NatsCredentials {
        &self.credentials
    }
}

/// Formats the servers without the credentials.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.servers.join(","))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

fn server(url: &str) -> Option<(String, NatsCredentials)> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("nats", url));
    if !matches!(scheme, "nats" | "tls") {
        return None;
    }
    // A password may contain an unescaped `@`; a host never does.
    let (who, host) = match rest.rsplit_once('@') {
        Some((who, host)) => (Some(who), host),
        None => (None, rest),
    };
    let host = host.trim_end_matches('/');
    if host.is_empty() || host.contains(['/', '?', '#', ' ']) {
        return None;
    }
    let server = format!("{scheme}://{host}");
    server.parse::<ServerAddr>().ok()?;
    let credentials = match who.map(|who| who.split_once(':').ok_or(who)) {
        None => NatsCredentials::None,
        Some(Ok((user, password))) => {
            NatsCredentials::Password { user: unescaped(user)?, password: unescaped(password)? }
        }
        Some(Err(token)) => NatsCredentials::Token(unescaped(token)?),
    };
    Some((server, credentials))
}

/// Decodes percent escapes such as `%40`. Returns `None` if the result is not UTF-8.
fn unescaped(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_removed_from_the_url() {
        let password = |user: &str, password: &str| NatsCredentials::Password {
            user: user.to_owned(),
            password: password.to_owned(),
        };
        for (text, servers, credentials) in [
            ("nats://localhost", "nats://localhost", NatsCredentials::None),
            ("localhost:4222", "nats://localhost:4222", NatsCredentials::None),
            ("nats://ada:p%40ss:w@db:4222/", "nats://db:4222", password("ada", "p@ss:w")),
            ("nats://ada:p@ss@db", "nats://db", password("ada", "p@ss")),
            ("nats://ada:50%@db", "nats://db", password("ada", "50%")),
            ("tls://s3cr3t@db:1", "tls://db:1", NatsCredentials::Token("s3cr3t".to_owned())),
            ("nats://u:p@a:1, nats://b:2", "nats://a:1,nats://b:2", password("u", "p")),
            ("nats://[::1]:4222", "nats://[::1]:4222", NatsCredentials::None),
        ] {
            let address = Address::parse(text).expect(text);
            assert_eq!(address.to_string(), servers, "{text}");
            assert!(address.credentials == credentials, "{text}");
            assert!(!format!("{address:?}").contains("p@ss"));
        }
    }

    #[test]
    fn invalid_addresses_are_reported_by_position() {
        for (text, entry) in
            [("", 1), ("http://h", 1), ("nats://", 1), ("nats://h:x", 1), ("nats://a,,b", 2)]
        {
            assert_eq!(Address::parse(text), Err(AddressError { entry }), "{text}");
        }
    }
}
