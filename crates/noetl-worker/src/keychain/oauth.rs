//! OAuth tokens requested with a client's credentials.

use std::time::Duration;

use noetl_model::{Failure, FailureKind, Map, Value};
use noetl_work::keychain_settings::{alias, label, text};

use super::{CommandKeychain, KeychainResolver, unusable};
use crate::call;
use crate::tokens::CachedToken;

/// Timeout of a token request.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(30);

/// Keys that may contain the endpoint's URL, by priority.
const ENDPOINTS: [&str; 4] = ["endpoint", "token_url", "token_uri", "url"];

impl KeychainResolver<'_, '_> {
    /// Returns a token and its cache key, requesting the token unless a valid one is cached.
    pub(super) async fn token(
        &self,
        name: &str,
        settings: &Map,
    ) -> Result<(Map, Option<String>), Failure> {
        let request = self.token_request(name, settings).await?;
        let key = Value::Object(request.clone()).to_string();
        let performer = self.keychain.performer;
        let now = performer.clock.now();
        let ttl = settings.get("ttl_seconds").and_then(Value::as_f64);
        let ask = async {
            let answer = self.ask(name, request).await?;
            let good_for = answer.get("expires_in").and_then(number).or(ttl);
            let good_for = good_for.and_then(|it| Duration::try_from_secs_f64(it).ok());
            Ok(CachedToken::new(answer, now, good_for))
        };
        let token = performer.tokens.get(key.clone(), now, ask).await?;
        let secret = Value::Object(secret_fields(&token.fields));
        let label = label(name);
        self.keychain.secrets.note(&label, &secret);
        performer.services.note_secret(self.keychain.command, &label, &secret).await?;
        performer.tokens.note_use(self.keychain.command.execution, &label, &token.fields);
        Ok((token.fields, Some(key)))
    }

    /// Builds the HTTP tool's settings for a token request.
    async fn token_request(&self, name: &str, settings: &Map) -> Result<Map, Failure> {
        let stored = match alias(settings) {
            Some(alias) => self.credential(name, alias).await?.data,
            None => Map::new(),
        };
        let endpoint = ENDPOINTS.iter().find_map(|key| text(settings, key));
        let endpoint = endpoint.or_else(|| ENDPOINTS.iter().find_map(|key| text(&stored, key)));
        let Some(endpoint) = endpoint else {
            return Err(unusable(name, "'endpoint' must be the address that gives tokens"));
        };
        let mut request = Map::new();
        request.insert("url".to_owned(), endpoint.into());
        request.insert("method".to_owned(), text(settings, "method").unwrap_or("POST").into());
        if let Some(headers) = settings.get("headers").filter(|headers| headers.is_object()) {
            request.insert("headers".to_owned(), headers.clone());
        }
        let body = match settings.get("data").or_else(|| settings.get("form")) {
            Some(data) if !data.is_null() => data.clone(),
            _ => Value::Object(client_credentials(name, settings, &stored)?),
        };
        // The body is a form unless the headers declare JSON.
        let named = request.get("headers").and_then(Value::as_object);
        let is_json = named.is_some_and(|headers| {
            headers.iter().any(|(key, value)| {
                let value = value.as_str().unwrap_or_default();
                key.eq_ignore_ascii_case("content-type") && value.contains("json")
            })
        });
        request.insert(if is_json { "json" } else { "form" }.to_owned(), body);
        Ok(request)
    }

    async fn ask(&self, name: &str, request: Map) -> Result<Map, Failure> {
        let CommandKeychain { performer, command, .. } = self.keychain;
        let call = noetl_tools::ToolCall {
            config: request,
            timeout: Some(TOKEN_TIMEOUT),
            ..call::bare(command)
        };
        let answer = call::guarded(performer, "http", call).await.map_err(|failure| {
            // Keeps transient failures apart from rejections. Drops the details, because the
            // endpoint's response may repeat the secrets it was sent.
            let kind = match failure.kind {
                kind if failure.retryable => kind,
                kind @ (FailureKind::Cancelled | FailureKind::ToolMissing) => kind,
                _ => FailureKind::Auth,
            };
            let message = format!("the keychain's '{name}' got no token: {}", failure.message);
            Failure { kind, message, retryable: failure.retryable, details: None }
        })?;
        let mut fields = match answer.get("data") {
            Some(Value::Object(fields)) => fields.clone(),
            _ => return Err(unusable(name, "the endpoint's answer is no map")),
        };
        let token = ["access_token", "token", "id_token"].iter().find_map(|key| text(&fields, key));
        let Some(token) = token.map(str::to_owned) else {
            return Err(unusable(name, "the endpoint answered without a token"));
        };
        for key in ["access_token", "token"] {
            fields.entry(key).or_insert_with(|| token.as_str().into());
        }
        Ok(fields)
    }
}

/// Builds the form of a client credentials grant.
fn client_credentials(name: &str, settings: &Map, stored: &Map) -> Result<Map, Failure> {
    let mut form = Map::new();
    let setting = |key: &str| text(settings, key).or_else(|| text(stored, key));
    form.insert(
        "grant_type".to_owned(),
        setting("grant_type").unwrap_or("client_credentials").into(),
    );
    for key in ["client_id", "client_secret"] {
        let Some(value) = setting(key) else {
            let message = format!("neither it nor its credential has '{key}'; give 'data' instead");
            return Err(unusable(name, message));
        };
        form.insert(key.to_owned(), value.into());
    }
    for key in ["scope", "audience", "resource"] {
        // `scope` in the entry itself is the sharing scope of the keychain entry.
        let value = if key == "scope" { text(stored, key) } else { setting(key) };
        if let Some(value) = value {
            form.insert(key.to_owned(), value.into());
        }
    }
    Ok(form)
}

/// Returns the secret fields of a token response. Such responses also contain names and states,
/// which must not be redacted because they occur in other data.
fn secret_fields(answer: &Map) -> Map {
    let is_secret = |key: &str| {
        let key = key.to_ascii_lowercase();
        (key.contains("token") || key.contains("secret")) && !key.contains("type")
    };
    answer
        .iter()
        .filter(|(key, value)| is_secret(key) && value.is_string())
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}
