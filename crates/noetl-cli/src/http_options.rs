//! Builds the HTTP options of the server from settings.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use noetl_config::Settings;
use noetl_config::tree::{self, Server};
use noetl_server::{
    Auth, CorsOrigins, InternalToken, Network, NetworkError, Oidc, OidcSettings, Options, Tls,
    TlsError,
};

use crate::egress::egress_policy;
use crate::error::{CliError, ErrorKind};
use crate::{limits, sessions, settings};

/// Time for which the content of that file is cached.
const TOKEN_CACHE_TIME: Duration = Duration::from_secs(1);

const AUTH: &str = "NOETL_AUTH";
const ISSUER: &str = "NOETL_OIDC_ISSUER";

const CERTIFICATE: &str = "NOETL_TLS_CERT";
const KEY: &str = "NOETL_TLS_KEY";
const CLIENT_CA: &str = "NOETL_TLS_CLIENT_CA";

/// Returns the HTTP options for an authentication mode.
pub(crate) fn options(mode: AuthMode) -> Result<Options, CliError> {
    let server: Server = settings::section()?;
    let auth = match mode {
        AuthMode::Open => Auth::Open,
        AuthMode::Token => Auth::Token,
        AuthMode::Oidc => oidc(&settings::section()?).map(Auth::Oidc)?,
    };
    let defaults = limits::edge(Options::default())?;
    Ok(Options {
        allow_any_host: !matches!(auth, Auth::Open),
        auth,
        cors_origins: cors_origins(&server)?,
        trusted_proxies: proxies(&server)?,
        egress: egress_policy()?,
        sessions: sessions::configured(&server),
        has_metrics: !server.disable_metrics,
        internal_token: InternalToken::read_by(token(server)),
        ..defaults
    })
}

/// Authentication of callers of the HTTP API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuthMode {
    /// Callers present an access token of this control plane.
    Token,
    /// Callers present a token of an identity provider, or an access token of this control plane.
    Oidc,
    /// Callers present no token. All routes except the internal ones are open.
    Open,
}

impl AuthMode {
    /// Returns the configured mode, or `default` if none is.
    pub(crate) fn configured(settings: &Settings, default: Self) -> Result<Self, CliError> {
        let auth: tree::Auth = settings::decode(settings)?;
        Ok(match auth.mode.as_deref() {
            Some("token") => Self::Token,
            Some("oidc") => Self::Oidc,
            Some(_) => Self::Open,
            None => default,
        })
    }
}

/// Returns the settings of the identity provider.
pub(crate) fn oidc(auth: &tree::Auth) -> Result<Oidc, CliError> {
    let needed = |value: &Option<String>, name: &str, example: &str| {
        value.clone().ok_or_else(|| {
            let message = format!("{AUTH}=oidc needs {name}");
            CliError::new(ErrorKind::Config, message)
                .hint(format!("set it, as in {name}={example}"))
        })
    };
    let settings = OidcSettings {
        issuer: needed(&auth.oidc_issuer, ISSUER, "https://id.example")?,
        audience: needed(&auth.oidc_audience, "NOETL_OIDC_AUDIENCE", "noetl")?,
        roles_claim: auth.oidc_roles_claim.clone(),
        tenant_claim: auth.oidc_tenant_claim.clone(),
        client_id: auth.oidc_client_id.clone(),
    };
    // An attacker who can change HTTP traffic could substitute the signing keys.
    let host = settings.issuer.strip_prefix("http://").map(|rest| {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        rest[..end].rsplit_once(':').map_or(&rest[..end], |(host, _)| host)
    });
    let is_here = host.is_some_and(|host| matches!(host, "localhost" | "127.0.0.1" | "[::1]"));
    if !is_here && !settings.issuer.starts_with("https://") {
        // The value may contain a password.
        let name = settings::current().name_of(ISSUER);
        let message = format!("{name} is not an address such as https://id.example");
        let failure = CliError::new(ErrorKind::Config, message);
        return Err(failure.hint("http is good enough for a provider on this machine only"));
    }
    Oidc::new(settings).map_err(|error| CliError::from_error(ErrorKind::Config, &error))
}

/// Returns the TLS certificate and keys of the listener, or `None` without TLS.
pub(crate) fn tls() -> Result<Option<Tls>, CliError> {
    let server: Server = settings::section()?;
    let (certificate, key) = match (&server.tls_cert, &server.tls_key) {
        (None, None) if server.tls_client_ca.is_some() => {
            let message = format!("{CLIENT_CA} needs {CERTIFICATE} and {KEY}");
            return Err(CliError::new(ErrorKind::Config, message));
        }
        (None, None) => return Ok(None),
        (Some(certificate), Some(key)) => (certificate, key),
        (one, _) => {
            let (has, lacks) = if one.is_some() { (CERTIFICATE, KEY) } else { (KEY, CERTIFICATE) };
            let message = format!("{has} is set and {lacks} is not");
            return Err(CliError::new(ErrorKind::Config, message).hint("TLS needs both"));
        }
    };
    let read = |name: &str, path: &Path| {
        std::fs::read(path).map_err(|error| {
            let name = settings::current().name_of(name);
            let message = format!("{name}: {} cannot be read: {error}", path.display());
            CliError::new(ErrorKind::Config, message)
        })
    };
    let client_ca =
        server.tls_client_ca.as_deref().map(|path| read(CLIENT_CA, path)).transpose()?;
    let (certificates, secret) = (read(CERTIFICATE, certificate)?, read(KEY, key)?);
    let tls = Tls::from_pem(&certificates, &secret, client_ca.as_deref());
    tls.map(Some).map_err(|error| {
        let name = match error {
            TlsError::Certificate => CERTIFICATE,
            TlsError::Key | TlsError::Mismatch => KEY,
            TlsError::ClientCa => CLIENT_CA,
        };
        CliError::new(ErrorKind::Config, format!("the file in {name} {error}"))
    })
}

/// Returns a function that returns the configured token of the internal routes, else reads it from
/// its file, which can change while the server runs.
fn token(server: Server) -> impl Fn() -> Option<String> + Send + Sync + 'static {
    let named = server.internal_api_token.map(|token| token.expose().to_owned());
    let file = server.internal_api_token_file.map(TokenFile::new);
    move || named.clone().or_else(|| file.as_ref()?.token_at(Instant::now()))
}

/// Token file with a cache. Every request of an internal route needs the token, so the file is read
/// at most once per [`TOKEN_CACHE_TIME`].
struct TokenFile {
    path: PathBuf,
    read: Mutex<Option<(Instant, Option<String>)>>,
}

impl TokenFile {
    fn new(path: PathBuf) -> Self {
        Self { path, read: Mutex::new(None) }
    }

    fn token_at(&self, now: Instant) -> Option<String> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        match &*read {
            Some((at, token)) if now.saturating_duration_since(*at) < TOKEN_CACHE_TIME => {
                token.clone()
            }
            _ => {
                let token = std::fs::read_to_string(&self.path).ok();
                *read = Some((now, token.clone()));
                token
            }
        }
    }
}

/// Returns the proxies whose forwarded client addresses are trusted.
pub(crate) fn proxies(server: &Server) -> Result<Vec<Network>, CliError> {
    let named = server.trusted_proxies.iter().flatten();
    let networks = named.map(|name| {
        name.trim().parse().map_err(|error: NetworkError| {
            let setting = settings::current().name_of("NOETL_TRUSTED_PROXIES");
            CliError::new(ErrorKind::Config, format!("{setting}: {error}"))
        })
    });
    networks.collect()
}

/// Returns the allowed CORS origins. By default there are none.
pub(crate) fn cors_origins(server: &Server) -> Result<CorsOrigins, CliError> {
    let Some(origins) = &server.cors_origins else { return Ok(CorsOrigins::default()) };
    if origins == &["*"] {
        return Ok(CorsOrigins::Any);
    }
    let origins: Vec<String> =
        origins.iter().map(|origin| origin.trim_end_matches('/').to_owned()).collect();
    let is_origin = |origin: &String| {
        let name = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        name.is_some_and(|name| !name.is_empty() && !name.contains('/'))
    };
    match origins.iter().find(|origin| !is_origin(origin)) {
        None => Ok(CorsOrigins::Listed(origins)),
        Some(wrong) => {
            let name = settings::current().name_of("NOETL_CORS_ORIGINS");
            let message =
                format!("{name} is `*` or a list as https://noetl.example, not '{wrong}'");
            Err(CliError::new(ErrorKind::Config, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_file_is_reread_after_its_cache_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let file = TokenFile::new(path.clone());
        let start = Instant::now();
        assert_eq!(file.token_at(start), None, "there is no such file yet");
        std::fs::write(&path, "one").unwrap();
        assert_eq!(
            file.token_at(start + TOKEN_CACHE_TIME / 2),
            None,
            "it is not read at every call"
        );
        assert_eq!(file.token_at(start + TOKEN_CACHE_TIME).as_deref(), Some("one"));
        std::fs::write(&path, "two").unwrap();
        assert_eq!(file.token_at(start + TOKEN_CACHE_TIME).as_deref(), Some("one"));
        assert_eq!(file.token_at(start + TOKEN_CACHE_TIME * 2).as_deref(), Some("two"));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(
            file.token_at(start + TOKEN_CACHE_TIME * 3),
            None,
            "a removed file ends the use of its token"
        );
    }
}
