//! Resolves entries of a playbook's keychain when a task references them.
//!
//! An entry's settings are rendered first, so one entry can reference another. A stored credential
//! is fetched for each command; an OAuth token is requested from its endpoint and cached until it
//! expires. A missing value never becomes an empty one: an entry that cannot be resolved fails the
//! task.

mod oauth;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use noetl_model::{Failure, FailureKind, Map, Value};
use noetl_template::{
    Data, KeychainNames as Found, LoadedValues, Scope, ValueLoader, ValueRef, ValueTemplate,
    from_json_owned,
};
use noetl_tools::ToolCredential;
use noetl_work::keychain_settings::{self as settings, alias, label};
use noetl_work::reveal::value_at;

use crate::executor::CommandExecutor;
use crate::secrets::CommandSecrets;
use crate::task::CommandTask;
use crate::values;

pub(crate) struct CommandKeychain<'a> {
    performer: &'a CommandExecutor,
    command: &'a CommandTask,
    secrets: CommandSecrets,
    /// Entries in the form the command contains, before rendering.
    entries: &'a Map,
    known: Mutex<HashMap<Arc<str>, ResolvedEntry>>,
}

#[derive(Clone)]
struct ResolvedEntry {
    fields: Data,
    /// Cache key of the token request; `None` for entries that are not OAuth tokens.
    request: Option<String>,
}

impl<'a> CommandKeychain<'a> {
    pub(crate) fn new(
        performer: &'a CommandExecutor,
        command: &'a CommandTask,
        secrets: CommandSecrets,
        entries: &'a Map,
    ) -> Self {
        Self { performer, command, secrets, entries, known: Mutex::default() }
    }

    /// Returns the fields of an entry. Its settings are rendered in the scope of the command.
    pub(crate) async fn find(
        &self,
        name: &Arc<str>,
        scope: &Scope,
        values: &values::CommandValues<'_>,
    ) -> Result<Data, Failure> {
        let search = KeychainResolver { keychain: self, scope, values };
        tokio::select! {
            entry = search.entry(name.clone(), Vec::new()) => entry,
            () = self.command.cancel.cancelled() => {
                Err(Failure::new(FailureKind::Cancelled, "the command was told to stop"))
            }
        }
    }

    /// Discards all resolved entries and their cached tokens, after a service rejected one of them.
    pub(crate) fn forget(&self) {
        for (_, known) in self.known().drain() {
            if let Some(request) = known.request {
                self.performer.tokens.forget(&request);
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Arc<str>, ResolvedEntry>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Resolution of one entry and the entries it references.
struct KeychainResolver<'s, 'a> {
    keychain: &'s CommandKeychain<'a>,
    scope: &'s Scope,
    values: &'s values::CommandValues<'a>,
}

impl<'s> KeychainResolver<'s, '_> {
    /// Returns the fields of an entry. `trail` lists the entries that reference it, to detect
    /// cycles.
    fn entry(
        &'s self,
        name: Arc<str>,
        mut trail: Vec<Arc<str>>,
    ) -> BoxFuture<'s, Result<Data, Failure>> {
        async move {
            if let Some(known) = self.keychain.known().get(&name) {
                return Ok(known.fields.clone());
            }
            if trail.contains(&name) {
                trail.push(name);
                return Err(unusable(&trail[0], format!("it needs itself: {}", trail.join(", "))));
            }
            trail.push(name.clone());
            let settings = self.settings(&name, &trail).await?;
            let (fields, request) = self.resolve(&name, &settings).await?;
            let fields = from_json_owned(Value::Object(fields));
            let known = ResolvedEntry { fields: fields.clone(), request };
            self.keychain.known().insert(name, known);
            Ok(fields)
        }
        .boxed()
    }

    /// Returns an entry's rendered settings.
    async fn settings(&self, name: &Arc<str>, trail: &[Arc<str>]) -> Result<Map, Failure> {
        let entries = self.keychain.entries;
        let written = entries.get(&**name).cloned().unwrap_or_default();
        let template = ValueTemplate::compile(written)
            .map_err(|error| unusable(name, format!("its settings are no templates: {error}")))?;
        let mut loaded = LoadedValues::default();
        let mut others = Found::new(entries.keys().map(|name| Arc::from(name.as_str())));
        loop {
            let scope = Scope {
                reach: ValueLoader::new(Arc::new(loaded.clone())),
                keychain: Some(Arc::new(others.clone())),
                ..self.scope.clone()
            };
            let rendered = template.render(&scope);
            let (needed, wanted) = (scope.reach.needed(), scope.reach.secrets());
            if needed.is_empty() && wanted.is_empty() {
                if let Some(why) = scope.reach.refused().or_else(|| scope.reach.lost()) {
                    return Err(unusable(name, why));
                }
                return match rendered {
                    Ok(Value::Object(settings)) => Ok(settings),
                    Ok(_) => Err(unusable(name, "its settings are no map")),
                    Err(error) => Err(unusable(name, error)),
                };
            }
            for place in needed {
                let value = self.values.find(&place, &self.keychain.command.cancel).await;
                match (&place, value) {
                    (ValueRef::Blob(reference), Some(Ok(data))) => {
                        loaded.insert_blob(reference.digest.clone(), data);
                    }
                    (_, Some(Err(why))) => loaded.insert_lost(place, why),
                    (_, _) => loaded
                        .insert_lost(place, "the blob is not available on this worker".to_owned()),
                }
            }
            for wanted in wanted {
                let fields = self.entry(wanted.clone(), trail.to_vec()).await?;
                others.insert(wanted, fields);
            }
        }
    }

    /// Returns an entry's fields, and the cache key of the request if it is a token.
    async fn resolve(&self, name: &str, written: &Map) -> Result<(Map, Option<String>), Failure> {
        let kind = written.get("kind").and_then(Value::as_str).unwrap_or_default();
        let kind = settings::kind(kind);
        let provider = written.get("provider").and_then(Value::as_str);
        match kind.as_str() {
            "static" => self.literal(name, written).map(|fields| (fields, None)),
            "bearer" | "token" | "bearer_token" => {
                self.bearer(name, written).await.map(|fields| (fields, None))
            }
            "oauth2" | "oauth" | "client_credentials" => self.token(name, written).await,
            "secret_manager" | "secrets" | "vault" if provider.is_some_and(|it| it != "noetl") => {
                let provider = provider.unwrap_or_default();
                Err(unusable(
                    name,
                    format!(
                        "the secret manager '{provider}' is not available here; keep the values \
                         with 'POST /api/credentials' and write 'kind: credential'"
                    ),
                ))
            }
            "credential" | "credentials" | "secret" | "secrets" | "secret_manager" => {
                self.stored(name, written).await.map(|fields| (fields, None))
            }
            // The kind is the type of a credential if the entry names one.
            _ if alias(written).is_some() => {
                self.stored(name, written).await.map(|fields| (fields, None))
            }
            other => Err(unusable(
                name,
                format!(
                    "there is no kind '{other}'; write 'credential', 'bearer', 'oauth2' or 'static'"
                ),
            )),
        }
    }

    /// Returns values written in the document. Everyone who can read the document knows them, so
    /// reports don't redact them, but variables still reject them.
    fn literal(&self, name: &str, settings: &Map) -> Result<Map, Failure> {
        let fields = settings::literal(settings);
        let fields = fields.ok_or_else(|| unusable(name, "'map' must hold its fields"))?;
        self.keychain.secrets.note(&label(name), &Value::Object(fields.clone()));
        Ok(fields.clone())
    }

    /// Returns the fields of a stored credential, renamed according to `map`.
    async fn stored(&self, name: &str, settings: &Map) -> Result<Map, Failure> {
        let credential = self.credential(name, alias(settings).unwrap_or(name)).await?;
        let Some(Value::Object(map)) = settings.get("map") else { return Ok(credential.data) };
        let mut fields = Map::new();
        for (field, path) in map {
            let Some(path) = path.as_str() else {
                return Err(unusable(name, format!("'map.{field}' must name a field")));
            };
            let value = value_at(&credential.data, path).ok_or_else(|| {
                let message = format!("credential '{}' has no field '{path}'", credential.name);
                unusable(name, message)
            })?;
            fields.insert(field.clone(), value.clone());
        }
        Ok(fields)
    }

    async fn credential(&self, name: &str, alias: &str) -> Result<ToolCredential, Failure> {
        let Some(source) = self.keychain.secrets.source() else {
            return Err(unusable(name, "this worker has no access to stored credentials"));
        };
        source.get(alias).await.map_err(|failure| Failure {
            message: format!("failed to load '{name}' of the keychain: {}", failure.message),
            ..failure
        })
    }

    async fn bearer(&self, name: &str, settings: &Map) -> Result<Map, Failure> {
        let own = settings::token(settings);
        let mut fields = match own {
            Some(_) => Map::new(),
            None => self.stored(name, settings).await?,
        };
        let candidate = own.or_else(|| settings::token(&fields));
        let Some(token) = candidate.map(str::to_owned) else {
            return Err(unusable(name, "there is no token in it"));
        };
        if own.is_some() {
            self.keychain.secrets.note(&label(name), &Value::from(token.as_str()));
        }
        settings::put_token(&mut fields, &token);
        Ok(fields)
    }
}

fn unusable(name: &str, why: impl std::fmt::Display) -> Failure {
    Failure::new(FailureKind::Auth, format!("failed to load '{name}' of the keychain: {why}"))
}
