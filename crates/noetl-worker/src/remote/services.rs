//! Control-plane services over HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use noetl_api::credentials::{OpenedCredential, SealedCredential};
use noetl_api::workers::RegisterRequest;
use noetl_api::{ClientError, work};
use noetl_model::event::BlobRef;
use noetl_model::placeholder::without_tags;
use noetl_model::{ExecutionId, Failure, FailureKind, Map, Tenant, Value};
use noetl_template::{blob_of_ref, result_ref};
use noetl_tools::{Artifacts, CredentialSource, LogSink, ToolCredential};
use noetl_work::{ResolvedPlaceholder, SEAL_ALGORITHM, SEAL_VERSION, SealedReply};

use super::content;
use super::link::{RETRY, ServerLink, chain};
use super::step_logs::{LogOrigin, LogShipper};
use crate::services::{Services, no_credential};
use crate::task::CommandTask;
use crate::values::{LoadError, ValueFetcher};

/// Error code of a server that lacks this worker's public key.
const NO_KEY: &str = "no_worker_key";

/// Services for the commands of one tenant.
pub(crate) struct RemoteServices {
    pub(crate) link: Arc<ServerLink>,
    pub(crate) lines: LogShipper,
    pub(crate) tenant: Tenant,
    /// Registration to send again if the server has lost it.
    pub(crate) registration: Arc<RegisterRequest>,
}

#[async_trait]
impl Services for RemoteServices {
    fn artifacts(&self, command: &CommandTask) -> Option<Arc<dyn Artifacts>> {
        let (link, tenant) = (self.link.clone(), self.tenant.clone());
        let (execution, step) = (command.execution, command.issued.step.clone());
        Some(Arc::new(RemoteArtifacts { link, tenant, execution, step }))
    }

    fn credentials(&self, command: &CommandTask) -> Option<Arc<dyn CredentialSource>> {
        let (link, tenant) = (self.link.clone(), self.tenant.clone());
        let (execution, registration) = (command.execution, self.registration.clone());
        Some(Arc::new(RemoteCredentials { link, tenant, execution, registration }))
    }

    fn logs(&self, command: &CommandTask) -> LogSink {
        let (execution, command) = (command.execution, command.id);
        self.lines.sink(LogOrigin { execution, command, tenant: self.tenant.clone() })
    }

    async fn resolve(
        &self,
        command: &CommandTask,
        text: &str,
    ) -> Result<ResolvedPlaceholder, Failure> {
        let (link, tenant) = (self.link.clone(), self.tenant.clone());
        let (execution, registration) = (command.execution, self.registration.clone());
        RemoteCredentials { link, tenant, execution, registration }.resolve(text).await
    }

    async fn note_secret(&self, _: &CommandTask, alias: &str, data: &Value) -> Result<(), Failure> {
        self.link.redaction.note(&self.tenant, alias, None, data);
        Ok(())
    }
}

struct RemoteCredentials {
    link: Arc<ServerLink>,
    tenant: Tenant,
    execution: ExecutionId,
    registration: Arc<RegisterRequest>,
}

impl RemoteCredentials {
    /// Fetches a sealed credential, retrying until the server responds. Returns `None` if it
    /// doesn't exist. The timeout of the step bounds the wait.
    async fn sealed(&self, name: &str) -> Result<Option<SealedCredential>, Failure> {
        let shown = without_tags(name);
        let alias = &*shown;
        let (mut delays, mut has_registered) = (RETRY.delays(), false);
        loop {
            let call = work::sealed_credential(name, &self.link.name, self.execution);
            let error = match self.link.request(call).await {
                Ok(sealed) => return Ok(Some(sealed)),
                Err(error) => error,
            };
            if code(&error) == Some(NO_KEY) && !has_registered {
                // The worker's registration was deleted.
                let _ = self.link.request(work::register(&self.registration)).await;
                has_registered = true;
                continue;
            }
            match error.status() {
                Some(404) => return Ok(None),
                // Neither error is transient: the server has no key, or the record is damaged.
                Some(500) => return Err(closed(alias, chain(&error))),
                _ if code(&error) == Some("no_encryption_key") => {
                    return Err(closed(alias, chain(&error)));
                }
                _ if error.is_passing() => tokio::time::sleep(delays.next_delay()).await,
                _ => return Err(closed(alias, chain(&error))),
            }
        }
    }
}

#[async_trait]
impl CredentialSource for RemoteCredentials {
    async fn get(&self, alias: &str) -> Result<ToolCredential, Failure> {
        let sealed = self.sealed(alias).await?.ok_or_else(|| no_credential(alias))?;
        let OpenedCredential { credential: opened_credential, placeholders } =
            self.opened(alias, &sealed)?;
        let data = match opened_credential.data {
            Some(Value::Object(data)) => data,
            other => Map::from_iter([("value".to_owned(), other.unwrap_or_default())]),
        };
        let (name, kind) = (&opened_credential.name, Some(opened_credential.kind.as_str()));
        self.link.redaction.note(&self.tenant, name, kind, &Value::Object(data.clone()));
        self.link.placeholders.note(self.execution, &opened_credential.name, placeholders);
        Ok(ToolCredential { name: opened_credential.name, kind: opened_credential.kind, data })
    }
}

impl RemoteCredentials {
    /// Resolves a placeholder through the server, which returns the single field, sealed.
    async fn resolve(&self, text: &str) -> Result<ResolvedPlaceholder, Failure> {
        let Some(sealed) = self.sealed(text).await? else { return Ok(ResolvedPlaceholder::Text) };
        let shown = without_tags(text);
        let OpenedCredential { credential: opened_credential, placeholders } =
            self.opened(&shown, &sealed)?;
        let named = placeholders.into_keys().next();
        let (Some(field), Some(value)) = (named, opened_credential.data) else {
            return Ok(ResolvedPlaceholder::Text);
        };
        let data = Value::Object(Map::from_iter([(field.clone(), value.clone())]));
        self.link.redaction.note(
            &self.tenant,
            &opened_credential.name,
            Some(&opened_credential.kind),
            &data,
        );
        let placeholders = BTreeMap::from([(field.clone(), text.to_owned())]);
        self.link.placeholders.note(self.execution, &opened_credential.name, placeholders);
        Ok(ResolvedPlaceholder::Value { alias: opened_credential.name, field, value })
    }

    fn opened(&self, alias: &str, sealed: &SealedCredential) -> Result<OpenedCredential, Failure> {
        if sealed.alg != SEAL_ALGORITHM || sealed.v != SEAL_VERSION {
            let message = format!("it is sealed with {} v{}", sealed.alg, sealed.v);
            return Err(closed(alias, message));
        }
        let seal = SealedReply {
            ephemeral: sealed.eph_pub.clone(),
            ciphertext: sealed.ciphertext.clone(),
        };
        let plain = self.link.key.open(&seal);
        let plain = plain.ok_or_else(|| closed(alias, "it is sealed for another worker"))?;
        serde_json::from_slice(&plain).map_err(|_| closed(alias, "what is sealed is no credential"))
    }
}

fn code(error: &ClientError) -> Option<&str> {
    match error {
        ClientError::Refused { body, .. } => Some(&body.code),
        _ => None,
    }
}

fn closed(alias: &str, why: impl std::fmt::Display) -> Failure {
    Failure::new(FailureKind::Auth, format!("credential '{alias}' cannot be opened: {why}"))
}

struct RemoteArtifacts {
    link: Arc<ServerLink>,
    tenant: Tenant,
    execution: ExecutionId,
    step: Arc<str>,
}

#[async_trait]
impl Artifacts for RemoteArtifacts {
    async fn get(&self, reference: &str) -> Result<Value, Failure> {
        let bytes = match blob_of_ref(reference.trim()) {
            Some(blob) => self.load(&blob).await?,
            None => return self.resolve(reference).await,
        };
        let read = tokio::task::spawn_blocking(move || serde_json::from_slice(&bytes)).await;
        let parse = |why: String| Failure::new(FailureKind::Parse, why);
        let read = read.map_err(|_| parse("the result could not be read".to_owned()))?;
        read.map_err(|error| parse(format!("the result is no JSON: {error}")))
    }

    async fn put(&self, mut value: Value) -> Result<Value, Failure> {
        let (link, tenant) = (self.link.clone(), self.tenant.clone());
        let text = tokio::task::spawn_blocking(move || {
            link.redaction.value(&tenant, &mut value);
            value.to_string()
        });
        let text = text.await.map_err(|_| {
            Failure::new(FailureKind::Unknown, "the value is not kept: it has no JSON form")
        })?;
        let blob = content::upload(&self.link, text.into()).await?;
        let reference = result_ref(self.execution, &self.step, &blob);
        Ok(serde_json::json!({
            "kind": "result_ref",
            "ref": reference,
            "_ref": reference,
            "meta": { "bytes": blob.bytes, "sha256": &*blob.digest },
        }))
    }
}

impl RemoteArtifacts {
    async fn load(&self, blob: &BlobRef) -> Result<Vec<u8>, Failure> {
        let mut delays = RETRY.delays();
        loop {
            match content::download(&self.link, blob).await {
                Ok(bytes) => return Ok(bytes),
                Err(error) if error.is_passing => tokio::time::sleep(delays.next_delay()).await,
                Err(error) => {
                    let message = format!("the result cannot be read: {}", error.message);
                    return Err(Failure::new(FailureKind::NotFound, message));
                }
            }
        }
    }

    /// Fetches the value of any reference that doesn't name a blob.
    async fn resolve(&self, reference: &str) -> Result<Value, Failure> {
        let mut delays = RETRY.delays();
        loop {
            match self.link.request(work::resolve(reference)).await {
                Ok(value) => return Ok(value),
                Err(error) if error.is_passing() => tokio::time::sleep(delays.next_delay()).await,
                Err(error) => {
                    let message = format!("the result cannot be read: {}", chain(&error));
                    return Err(Failure::new(FailureKind::NotFound, message));
                }
            }
        }
    }
}

/// Blobs of a control plane in another process.
pub(crate) struct RemoteValues(pub(crate) Arc<ServerLink>);

#[async_trait]
impl ValueFetcher for RemoteValues {
    async fn load(&self, reference: &BlobRef) -> Result<Vec<u8>, LoadError> {
        content::download(&self.0, reference).await
    }
}
