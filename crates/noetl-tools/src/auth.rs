//! Resolves `auth` into the settings of a tool.
//!
//! `auth` (or `credential`) is the alias of a stored credential, a map `{type, credential | key,
//! …}` that names one, a map `{type, …}` that contains one, or a map of several of those under
//! arbitrary names. The fields of a credential become defaults: settings of the step itself take
//! precedence. Tools receive plain settings and never a credential.

mod place;

use noetl_model::{Failure, FailureKind, Map, Value};

use crate::config::{self, type_name, wrong};
use crate::{ToolCall, ToolCredential};

/// Settings that request a credential.
const KEYS: [&str; 2] = ["auth", "credential"];

/// Keys that name a stored credential in an `auth` map.
const ALIAS_KEYS: [&str; 2] = ["credential", "key"];

/// Adds the fields of `credential` as defaults to the settings of a tool of `kind`.
///
/// # Errors
///
/// Returns a `config` failure if a tool of this kind cannot use a credential of this type, or if
/// the credential lacks a required field.
pub fn inject(kind: &str, config: &mut Map, credential: &ToolCredential) -> Result<(), Failure> {
    let credential_kind = credential.kind.to_ascii_lowercase().replace('-', "_");
    match (kind, credential_kind.as_str()) {
        ("postgres", "postgres" | "postgresql" | "pg") => {
            place::postgres(config, credential);
            Ok(())
        }
        ("http", "bearer" | "bearer_token" | "token" | "oauth2" | "oauth") => {
            place::bearer(config, credential)
        }
        ("http", "api_key" | "apikey") => place::api_key(config, credential),
        ("http", "basic" | "http_basic" | "basic_auth") => place::basic(config, credential),
        ("nats", "nats") => {
            place::nats(config, credential);
            Ok(())
        }
        ("sqlite", "sqlite") | ("duckdb", "duckdb") => {
            place::file(config, credential);
            Ok(())
        }
        ("postgres" | "http" | "nats" | "sqlite" | "duckdb", other) => Err(wrong(format!(
            "credential '{}' is of type '{other}', which the {kind} tool cannot use; it takes {}",
            credential.name,
            credential_type_of(kind),
        ))),
        _ => Err(takes_none(kind)),
    }
}

/// Resolves the credentials of a call and adds their fields to its settings.
pub(crate) async fn resolve(kind: &str, call: &mut ToolCall) -> Result<(), Failure> {
    match kind {
        // The `secrets` tool reads the credential itself.
        "secrets" => Ok(()),
        "transfer" => {
            for side in ["source", "target"] {
                let Some(Value::Object(settings)) = call.config.get_mut(side) else { continue };
                let mut settings = std::mem::take(settings);
                let named = config::first(&settings, &["kind", "type"]).map(|(_, value)| value);
                let side_kind = named.and_then(Value::as_str).unwrap_or_default().to_owned();
                let done = resolve_in(&side_kind, &mut settings, call).await;
                call.config.insert(side.to_owned(), Value::Object(settings));
                done.map_err(|failure| Failure {
                    message: format!("`{side}`: {}", failure.message),
                    ..failure
                })?;
            }
            Ok(())
        }
        _ => {
            let mut settings = std::mem::take(&mut call.config);
            let done = resolve_in(kind, &mut settings, call).await;
            call.config = settings;
            done
        }
    }
}

/// Resolves the credentials that `settings` request and adds their fields, as for a tool of `kind`.
pub(crate) async fn resolve_in(
    kind: &str,
    settings: &mut Map,
    call: &ToolCall,
) -> Result<(), Failure> {
    for key in KEYS {
        match settings.get(key) {
            None => continue,
            Some(Value::Null) => {}
            // An unknown kind of tool reads its `auth` itself.
            Some(_) if !is_ours(kind) => continue,
            Some(auth) => {
                for credential in credentials(key, &auth.clone(), call).await? {
                    inject(kind, settings, &credential)?;
                }
            }
        }
        settings.remove(key);
    }
    Ok(())
}

/// Returns the credentials that a setting requests, in its order.
async fn credentials(
    key: &str,
    auth: &Value,
    call: &ToolCall,
) -> Result<Vec<ToolCredential>, Failure> {
    match auth {
        Value::String(alias) => Ok(vec![stored(key, alias, call).await?]),
        Value::Object(spec) if is_single(spec) => Ok(vec![single(key, spec, call).await?]),
        Value::Object(several) if !several.is_empty() => {
            let mut credentials = Vec::with_capacity(several.len());
            for (name, spec) in several {
                let place = format!("{key}.{name}");
                credentials.push(match spec {
                    Value::String(alias) => stored(&place, alias, call).await?,
                    Value::Object(spec) if is_single(spec) => single(&place, spec, call).await?,
                    _ => return Err(shape(&place, spec)),
                });
            }
            Ok(credentials)
        }
        other => Err(shape(key, other)),
    }
}

/// Returns `true` if a map describes one credential rather than several by name.
fn is_single(spec: &Map) -> bool {
    let is_text = |key: &&str| spec.get(*key).is_some_and(Value::is_string);
    ["type", "credential", "key"].iter().any(is_text)
}

/// Returns one credential: a stored one with the map's other keys as overrides, or one built from
/// these keys.
async fn single(key: &str, spec: &Map, call: &ToolCall) -> Result<ToolCredential, Failure> {
    let kind = config::text(spec, "type")?;
    let fields = spec.iter().filter(|(name, value)| {
        !value.is_null() && *name != "type" && !ALIAS_KEYS.contains(&name.as_str())
    });
    let fields = fields.map(|(name, value)| (name.clone(), value.clone()));
    let mut credential = match config::first(spec, &ALIAS_KEYS) {
        Some((_, Value::String(alias))) => stored(key, alias, call).await?,
        Some((name, other)) => {
            let actual = type_name(other);
            return Err(wrong(format!("`{key}.{name}` must name a credential, not be {actual}")));
        }
        None => ToolCredential { name: key.to_owned(), kind: String::new(), data: Map::new() },
    };
    credential.data.extend(fields);
    if let Some(kind) = kind {
        kind.clone_into(&mut credential.kind);
    }
    Ok(credential)
}

async fn stored(key: &str, alias: &str, call: &ToolCall) -> Result<ToolCredential, Failure> {
    let alias = alias.trim();
    if alias.is_empty() {
        return Err(wrong(format!("`{key}` is an empty text; name a stored credential")));
    }
    let Some(source) = &call.credentials else {
        return Err(wrong(format!(
            "`{key}` names the stored credential '{alias}', but this worker has no credentials"
        )));
    };
    tokio::select! {
        fetched = source.get(alias) => fetched,
        () = call.cancel.cancelled() => Err(call.cancelled()),
    }
}

fn shape(key: &str, value: &Value) -> Failure {
    wrong(format!(
        "`{key}` must name a stored credential or be a map with `type`, not {}",
        type_name(value)
    ))
}

fn is_ours(kind: &str) -> bool {
    const OURS: [&str; 11] = [
        "postgres", "http", "nats", "sqlite", "duckdb", "noop", "shell", "python", "artifact",
        "transfer", "secrets",
    ];
    OURS.contains(&kind)
}

fn credential_type_of(kind: &str) -> &'static str {
    match kind {
        "http" => "'bearer', 'basic' and 'api_key'",
        "postgres" => "'postgres'",
        "nats" => "'nats'",
        "sqlite" => "'sqlite'",
        _ => "'duckdb'",
    }
}

fn takes_none(kind: &str) -> Failure {
    Failure::new(
        FailureKind::Config,
        format!(
            "the {kind} tool takes no `auth`; hand it the one field it needs through `input`, \
             from `keychain` or a secrets step"
        ),
    )
}

#[cfg(test)]
mod tests;
