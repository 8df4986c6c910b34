//! Resolves keychain entries that a playbook declares, for workers without their own keychain.
//!
//! Supports stored credentials, literal values, and bearer tokens. Entries that need a call to an
//! external service fail with a reason: a worker has to resolve them, because its network may reach
//! the service. Results are not cached: reading the credential again is as fast, and a changed
//! credential takes effect at once.

use std::sync::Arc;

use noetl_catalog::PlaybookError;
use noetl_model::{Fact, Map, Seq, Tenant, Value};
use noetl_store::ExecutionRow;
use noetl_template::{ExecutionIdentity, Names, Scope, ValueTemplate, from_json_owned};
use noetl_work::keychain_settings::{self as settings, alias, label};
use noetl_work::reveal::value_at;

use super::KeychainService;
use crate::audit::{SecretOutcome, SecretRequest};
use crate::credential_error::CredentialError;

impl KeychainService {
    /// Returns the data of the entry that an execution's playbook declares under a name, or `None`
    /// if it declares none.
    pub(super) async fn declared(
        &self,
        tenant: &Tenant,
        row: &ExecutionRow,
        name: &str,
        asking: &SecretRequest,
    ) -> Result<Option<Value>, CredentialError> {
        let playbook = match self.playbooks.get(&*self.store, tenant, row.catalog).await {
            Ok(playbook) => playbook,
            Err(PlaybookError::Store(error)) => return Err(CredentialError::Store(error)),
            Err(PlaybookError::NotFound | PlaybookError::Invalid(_)) => return Ok(None),
        };
        let Some(entry) = playbook.keychain.iter().find(|entry| &*entry.name == name) else {
            return Ok(None);
        };
        let written = self.settings(row, name, entry.settings.clone()).await?;
        let kind = settings::kind(&entry.kind);
        let provider = written.get("provider").and_then(Value::as_str).unwrap_or("noetl");
        let data = match kind.as_str() {
            "static" => self.literal(tenant, name, &written, asking).await?,
            "bearer" | "token" | "bearer_token" => {
                self.bearer(tenant, name, &written, asking).await?
            }
            "oauth2" | "oauth" | "client_credentials" => {
                return Err(unresolved(name, "its token is asked for by the worker that uses it"));
            }
            "secret_manager" | "secrets" | "vault" if provider != "noetl" => {
                let reason = format!("the secret manager '{provider}' is not available here");
                return Err(unresolved(name, reason));
            }
            _ => self.stored(tenant, name, &written, asking).await?,
        };
        Ok(Some(Value::Object(data)))
    }

    /// Renders the settings of an entry with the workload of the execution.
    async fn settings(
        &self,
        row: &ExecutionRow,
        name: &str,
        written: Map,
    ) -> Result<Map, CredentialError> {
        let template = ValueTemplate::compile(Value::Object(written))
            .map_err(|error| unresolved(name, error))?;
        let first = self.store.read(row.id, Seq(0), 1).await.map_err(CredentialError::Store)?;
        let workload = first.into_iter().find_map(|event| match event.fact {
            Fact::PlaybookStarted(started) => Some(started.workload),
            _ => None,
        });
        let named = |(key, value): (String, Value)| (Arc::from(key), from_json_owned(value).into());
        let workload: Names = workload.into_iter().flatten().map(named).collect();
        let identity = ExecutionIdentity { execution: row.id, ..ExecutionIdentity::default() };
        let now = self.clock.now();
        let scope = Scope { workload: Arc::new(workload), identity, now, ..Scope::default() };
        let rendered = template.render(&scope).map_err(|error| unresolved(name, error))?;
        if !scope.reach.needed().is_empty() || !scope.reach.secrets().is_empty() {
            return Err(unresolved(name, "its settings need more than the input of the execution"));
        }
        match rendered {
            Value::Object(settings) => Ok(settings),
            _ => Err(unresolved(name, "its settings are no map")),
        }
    }

    /// Returns the literal values in the document.
    async fn literal(
        &self,
        tenant: &Tenant,
        name: &str,
        settings: &Map,
        asking: &SecretRequest,
    ) -> Result<Map, CredentialError> {
        let fields = settings::literal(settings);
        let fields = fields.ok_or_else(|| unresolved(name, "'map' must hold its fields"))?;
        self.credentials.record(tenant, asking, &label(name), SecretOutcome::Ok, None).await?;
        Ok(fields.clone())
    }

    /// Returns the fields of a stored credential, renamed by `map`.
    async fn stored(
        &self,
        tenant: &Tenant,
        name: &str,
        settings: &Map,
        asking: &SecretRequest,
    ) -> Result<Map, CredentialError> {
        let alias = alias(settings).unwrap_or(name);
        let revealed = self.credentials.reveal(tenant, alias, asking).await;
        let data = match revealed {
            Ok((_, Value::Object(data))) => data,
            Ok(_) => return Err(unresolved(name, format!("credential '{alias}' has no fields"))),
            Err(CredentialError::NotFound(_)) => {
                return Err(unresolved(name, format!("there is no credential '{alias}'")));
            }
            Err(error) => return Err(error),
        };
        let Some(Value::Object(map)) = settings.get("map") else { return Ok(data) };
        let mut fields = Map::new();
        for (field, from) in map {
            let found = from.as_str().and_then(|from| value_at(&data, from));
            let reason = || format!("credential '{alias}' has no field for 'map.{field}'");
            fields.insert(field.clone(), found.ok_or_else(|| unresolved(name, reason()))?.clone());
        }
        Ok(fields)
    }

    async fn bearer(
        &self,
        tenant: &Tenant,
        name: &str,
        settings: &Map,
        asking: &SecretRequest,
    ) -> Result<Map, CredentialError> {
        let token = |map: &Map| settings::token(map).map(str::to_owned);
        let (mut fields, token) = match token(settings) {
            Some(token) => {
                self.credentials
                    .record(tenant, asking, &label(name), SecretOutcome::Ok, None)
                    .await?;
                (Map::new(), Some(token))
            }
            None => {
                let fields = self.stored(tenant, name, settings, asking).await?;
                let token = token(&fields);
                (fields, token)
            }
        };
        let token = token.ok_or_else(|| unresolved(name, "there is no token in it"))?;
        settings::put_token(&mut fields, &token);
        Ok(fields)
    }
}

fn unresolved(name: &str, reason: impl std::fmt::Display) -> CredentialError {
    CredentialError::Unresolved { name: name.to_owned(), reason: reason.to_string() }
}
