//! Reads the HTTP settings of the server from the environment.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use noetl_server::{
    Auth, CorsOrigins, InternalToken, Oidc, OidcSettings, Options, TOKEN_VARIABLE, Tls, TlsError,
};

use crate::arguments::AuthMode;
use crate::egress::fence;
use crate::error::{CliError, ErrorKind};
use crate::limits;
use crate::sessions;
use crate::settings::{setting, switch};

/// Variable with the path of a file that contains the token of the internal routes, for mounted
/// secrets.
const TOKEN_FILE: &str = "NOETL_INTERNAL_API_TOKEN_FILE";

/// Time for which the content of that file is cached.
const TOKEN_KEPT: Duration = Duration::from_secs(1);

/// Variable with the authentication mode.
const AUTH: &str = "NOETL_AUTH";

const CERTIFICATE: &str = "NOETL_TLS_CERT";
const KEY: &str = "NOETL_TLS_KEY";
const CLIENT_CA: &str = "NOETL_TLS_CLIENT_CA";

/// Returns the HTTP options for an authentication mode, with all settings from the environment.
pub(crate) fn options(auth: AuthMode) -> Result<Options, CliError> {
    let auth = match auth {
        AuthMode::Open => Auth::Open,
        AuthMode::Token => Auth::Token,
        AuthMode::Oidc => oidc().map(Auth::Oidc)?,
    };
    let defaults = limits::edge(Options::default())?;
    Ok(Options {
        allow_any_host: !matches!(auth, Auth::Open),
        auth,
        cors_origins: cors_origins()?,
        fence: fence()?,
        internal_token: InternalToken::read_by(token()),
        sessions: sessions::from_environment(),
        has_metrics: !switch("NOETL_DISABLE_METRICS")?,
        ..defaults
    })
}

/// Reads the authentication mode from `NOETL_AUTH`. Unset or empty means open.
pub(crate) fn auth() -> Result<AuthMode, CliError> {
    let text = setting(AUTH).unwrap_or_default();
    match text.trim().to_ascii_lowercase().as_str() {
        "" | "open" => Ok(AuthMode::Open),
        "token" => Ok(AuthMode::Token),
        "oidc" => Ok(AuthMode::Oidc),
        _ => {
            let message = format!("{AUTH} is open, token or oidc, not '{text}'");
            Err(CliError::new(ErrorKind::Config, message))
        }
    }
}

/// Reads the settings of the identity provider.
fn oidc() -> Result<Oidc, CliError> {
    let needed = |name: &str, example: &str| {
        setting(name).ok_or_else(|| {
            let message = format!("{AUTH}=oidc needs {name}");
            CliError::new(ErrorKind::Config, message)
                .hint(format!("set it, as in {name}={example}"))
        })
    };
    let settings = OidcSettings {
        issuer: needed("NOETL_OIDC_ISSUER", "https://id.example")?,
        audience: needed("NOETL_OIDC_AUDIENCE", "noetl")?,
        roles_claim: setting("NOETL_OIDC_ROLES_CLAIM").unwrap_or_else(|| "roles".to_owned()),
        tenant_claim: setting("NOETL_OIDC_TENANT_CLAIM"),
        client_id: setting("NOETL_OIDC_CLIENT_ID"),
    };
    // An attacker who can change HTTP traffic could substitute the signing keys.
    let host = settings.issuer.strip_prefix("http://").map(|rest| {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        rest[..end].rsplit_once(':').map_or(&rest[..end], |(host, _)| host)
    });
    let is_here = host.is_some_and(|host| matches!(host, "localhost" | "127.0.0.1" | "[::1]"));
    if !is_here && !settings.issuer.starts_with("https://") {
        let message = format!(
            "NOETL_OIDC_ISSUER is an address as https://id.example, not '{}'",
            settings.issuer
        );
        let failure = CliError::new(ErrorKind::Config, message);
        return Err(failure.hint("http is good enough for a provider on this machine only"));
    }
    Oidc::new(settings).map_err(|error| CliError::from_error(ErrorKind::Config, &error))
}

/// Reads the TLS certificate and keys of the listener, or returns `None` without TLS.
pub(crate) fn tls() -> Result<Option<Tls>, CliError> {
    let (certificate, key) = match (setting(CERTIFICATE), setting(KEY)) {
        (None, None) if setting(CLIENT_CA).is_some() => {
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
    let read = |name: &str, path: &str| {
        std::fs::read(Path::new(path)).map_err(|error| {
            CliError::new(ErrorKind::Config, format!("{name}: {path} cannot be read: {error}"))
        })
    };
    let client_ca = setting(CLIENT_CA).map(|path| read(CLIENT_CA, &path)).transpose()?;
    let (certificates, secret) = (read(CERTIFICATE, &certificate)?, read(KEY, &key)?);
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

/// Returns a function that reads the token of the internal routes from its variable, else from its
/// file, which can change while the server runs.
fn token() -> impl Fn() -> Option<String> + Send + Sync + 'static {
    let (named, file) = (setting(TOKEN_VARIABLE), setting(TOKEN_FILE).map(TokenFile::new));
    move || named.clone().or_else(|| file.as_ref()?.token_at(Instant::now()))
}

/// Token file with a cache. Every request of an internal route needs the token, so the file is read
/// at most once per [`TOKEN_KEPT`].
struct TokenFile {
    path: String,
    read: Mutex<Option<(Instant, Option<String>)>>,
}

impl TokenFile {
    fn new(path: String) -> Self {
        Self { path, read: Mutex::new(None) }
    }

    fn token_at(&self, now: Instant) -> Option<String> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        match &*read {
            Some((at, token)) if now.saturating_duration_since(*at) < TOKEN_KEPT => token.clone(),
            _ => {
                let token = std::fs::read_to_string(&self.path).ok();
                *read = Some((now, token.clone()));
                token
            }
        }
    }
}

/// Reads the allowed CORS origins: a comma-separated list, or `*`. By default there are none.
fn cors_origins() -> Result<CorsOrigins, CliError> {
    let Some(text) = setting("NOETL_CORS_ORIGINS") else { return Ok(CorsOrigins::default()) };
    if text.trim() == "*" {
        return Ok(CorsOrigins::Any);
    }
    let origins = text.split(',').map(str::trim).filter(|origin| !origin.is_empty());
    let origins: Vec<String> =
        origins.map(|origin| origin.trim_end_matches('/').to_owned()).collect();
    let is_origin = |origin: &String| {
        let name = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        name.is_some_and(|name| !name.is_empty() && !name.contains('/'))
    };
    match origins.iter().find(|origin| !is_origin(origin)) {
        None => Ok(CorsOrigins::Listed(origins)),
        Some(wrong) => {
            let message = format!(
                "NOETL_CORS_ORIGINS is `*` or a list as https://noetl.example, not '{wrong}'"
            );
            Err(CliError::new(ErrorKind::Config, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_in_a_file_is_read_again_when_a_moment_has_passed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let file = TokenFile::new(path.to_str().unwrap().to_owned());
        let start = Instant::now();
        assert_eq!(file.token_at(start), None, "there is no such file yet");
        std::fs::write(&path, "one").unwrap();
        assert_eq!(file.token_at(start + TOKEN_KEPT / 2), None, "it is not read at every call");
        assert_eq!(file.token_at(start + TOKEN_KEPT).as_deref(), Some("one"));
        std::fs::write(&path, "two").unwrap();
        assert_eq!(file.token_at(start + TOKEN_KEPT).as_deref(), Some("one"));
        assert_eq!(file.token_at(start + TOKEN_KEPT * 2).as_deref(), Some("two"));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(file.token_at(start + TOKEN_KEPT * 3), None, "who takes it away shuts the door");
    }
}
