//! Settings of the HTTP edge, from the environment.

use noetl_server::{CorsOrigins, InternalToken, Options, TOKEN_VARIABLE};

use crate::failure::{Failure, Kind};
use crate::settings::{setting, switch};

/// A file that holds the token of the internal routes, where a secret is mounted rather than set.
const TOKEN_FILE: &str = "NOETL_INTERNAL_API_TOKEN_FILE";

/// What the environment says of the edge.
pub(crate) fn options() -> Result<Options, Failure> {
    Ok(Options {
        cors_origins: cors_origins()?,
        internal_token: InternalToken::read_by(token),
        has_metrics: !switch("NOETL_DISABLE_METRICS")?,
        ..Options::default()
    })
}

/// The token as it is now: both a variable and a file are looked at anew, so a file can be changed
/// while the server runs.
fn token() -> Option<String> {
    let file = || setting(TOKEN_FILE).and_then(|path| std::fs::read_to_string(path).ok());
    setting(TOKEN_VARIABLE).or_else(file)
}

/// Web pages that may call: a list, or `*`.
fn cors_origins() -> Result<CorsOrigins, Failure> {
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
            Err(Failure::new(Kind::Config, message))
        }
    }
}
