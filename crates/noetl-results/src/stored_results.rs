//! Stores results that workers send independently of their reports, and resolves result references.

use std::sync::Arc;

use noetl_engine::replay::canonical;
use noetl_identity::IdGenerator;
use noetl_model::placeholder::defuse;
use noetl_model::{DEPTH_MAX, ExecutionId, ResultId, Tenant, Value, is_deeper_than};
use noetl_store::{Digest, ExecutionDataStore, NewResult, ResultSummary, StoreError};
use noetl_template::blob_of_ref;
use noetl_work::Redaction;

use crate::objects::{is_stored_for, owner};
use crate::results::ResultStorage;
use crate::variables::{SaveError, check_name};

/// Maximum number of keys considered for one key suffix: one per tenant that has it.
const ENDS_MAX: usize = 1000;

#[derive(Debug, Clone)]
pub struct ResultRequest {
    pub name: String,
    pub data: Value,
    /// Intended lifetime, as the caller states it. Recorded only.
    pub scope: String,
    /// Step that produced the result.
    pub source_step: Option<String>,
}

/// Errors of resolving a reference.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    #[error(
        "a reference is 'noetl://execution/<id>/result/<name>/<id>' or \
         'noetl://<tenant>/<project>/results/<id>/<step>/<frame>/<row>/<attempt>', not '{0}'"
    )]
    Malformed(String),
    /// The referenced result does not exist.
    #[error("result not found")]
    NotFound,
    #[error("store is unavailable")]
    Store(#[source] StoreError),
}

/// Resolved value of a reference, as JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved(pub Vec<u8>);

/// Stores results and resolves references. Cheap to clone.
#[derive(Clone)]
pub struct StoredResults {
    store: Arc<dyn ExecutionDataStore>,
    ids: IdGenerator,
    results: ResultStorage,
    redaction: Redaction,
}

impl StoredResults {
    pub(crate) fn new(
        store: Arc<dyn ExecutionDataStore>,
        ids: IdGenerator,
        results: ResultStorage,
        redaction: Redaction,
    ) -> Self {
        Self { store, ids, results, redaction }
    }

    /// Stores a result with secrets redacted. Not idempotent: a retry stores a second result, and
    /// the caller uses the reference it received.
    pub async fn put(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        request: ResultRequest,
    ) -> Result<ResultSummary, SaveError> {
        check_name("result", &request.name)?;
        if is_deeper_than(&request.data, DEPTH_MAX) {
            return Err(SaveError::TooDeep(request.name));
        }
        let known = self.store.execution(tenant, execution).await.map_err(SaveError::Store)?;
        if known.is_none() {
            return Err(SaveError::NoExecution(execution));
        }
        let mut data = request.data;
        defuse(&mut data);
        self.redaction.value(tenant, &mut data);
        self.ids.ensure_leased().map_err(SaveError::Store)?;
        let id = self.ids.result();
        let new = measured(data, |bytes, sha256| ResultSummary {
            id,
            execution,
            name: request.name,
            scope: request.scope,
            source_step: request.source_step,
            bytes,
            sha256,
            media_type: "application/json".to_owned(),
            expires_at: None,
        });
        let new = new.await;
        let summary = new.summary.clone();
        // A minted ID is unique, so an existing row with it is this very result.
        self.store.put_result(tenant, new).await.map_err(SaveError::Store)?;
        Ok(summary)
    }

    /// Returns the value of a reference, if it belongs to the tenant.
    pub async fn resolve(&self, tenant: &Tenant, uri: &str) -> Result<Resolved, ResolveError> {
        match Reference::read(uri) {
            None => Err(ResolveError::Malformed(uri.chars().take(200).collect())),
            Some(Reference::Stored { execution, name, id }) => {
                let found = self.store.result_data(tenant, execution, name, id).await;
                let found = found.map_err(ResolveError::Store)?.ok_or(ResolveError::NotFound)?;
                serde_json::to_vec(&found).map(Resolved).map_err(|_| ResolveError::NotFound)
            }
            Some(Reference::Content { execution }) => {
                self.content(tenant, execution, uri).await.map(Resolved)
            }
            Some(Reference::Object { tenant: named, execution, end }) => {
                if named != tenant.as_str() {
                    return Err(ResolveError::NotFound);
                }
                self.is_there(tenant, execution).await?;
                self.object(tenant, &end).await.map(Resolved)
            }
        }
    }

    /// Returns a blob that an execution of the tenant refers to.
    async fn content(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        uri: &str,
    ) -> Result<Vec<u8>, ResolveError> {
        let reference = blob_of_ref(uri).ok_or(ResolveError::NotFound)?;
        self.is_there(tenant, execution).await?;
        let digest: Digest = reference.digest.parse().map_err(|_| ResolveError::NotFound)?;
        let own = self.store.references(execution).await.map_err(ResolveError::Store)?;
        if !own.contains(&digest) {
            return Err(ResolveError::NotFound);
        }
        self.results.read(&reference).await.map_err(|error| match error.is_transient() {
            true => ResolveError::Store(StoreError::backend("read a result", error)),
            false => ResolveError::NotFound,
        })
    }

    /// Checks that an execution belongs to the tenant.
    async fn is_there(&self, tenant: &Tenant, id: ExecutionId) -> Result<(), ResolveError> {
        let known = self.store.execution(tenant, id).await.map_err(ResolveError::Store)?;
        known.map(|_| ()).ok_or(ResolveError::NotFound)
    }

    /// Returns an object of the tenant by the suffix of its key. A key that names the tenant takes
    /// precedence over its other keys.
    async fn object(&self, tenant: &Tenant, end: &str) -> Result<Vec<u8>, ResolveError> {
        let found = self.store.objects_ending(end, ENDS_MAX).await.map_err(ResolveError::Store)?;
        let mut mine: Vec<_> =
            found.into_iter().filter(|summary| is_stored_for(&summary.key, tenant)).collect();
        mine.sort_by_key(|summary| owner(&summary.key).is_none());
        let key = mine.into_iter().next().ok_or(ResolveError::NotFound)?.key;
        let object = self.store.object(&key).await.map_err(ResolveError::Store)?;
        Ok(object.ok_or(ResolveError::NotFound)?.bytes)
    }
}

/// Returns a result with the size and checksum of its JSON with sorted keys. Runs on a blocking
/// thread, because a result of 64 MiB takes long.
async fn measured(data: Value, summary: impl FnOnce(u64, String) -> ResultSummary) -> NewResult {
    let task = tokio::task::spawn_blocking(move || {
        let text = canonical::text(&data);
        (text.len() as u64, Digest::of_bytes(text.as_bytes()).to_string(), data)
    });
    match task.await {
        Ok((bytes, sha256, data)) => NewResult { summary: summary(bytes, sha256), data },
        Err(stopped) => match stopped.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only a runtime that shuts down drops the task before it runs; then the response is
            // not awaited.
            Err(_) => NewResult { summary: summary(0, String::new()), data: Value::Null },
        },
    }
}

/// Returns the execution in a reference, or `None` if the text is not a reference.
pub fn execution_in(uri: &str) -> Option<ExecutionId> {
    Reference::read(uri).map(|reference| match reference {
        Reference::Stored { execution, .. }
        | Reference::Content { execution }
        | Reference::Object { execution, .. } => execution,
    })
}

#[derive(Debug, PartialEq, Eq)]
enum Reference<'u> {
    Stored {
        execution: ExecutionId,
        name: &'u str,
        id: ResultId,
    },
    /// A blob of an execution.
    Content {
        execution: ExecutionId,
    },
    /// An object of this tenant, by the suffix of its key.
    Object {
        tenant: &'u str,
        execution: ExecutionId,
        end: String,
    },
}

impl<'u> Reference<'u> {
    fn read(uri: &'u str) -> Option<Self> {
        let rest = uri.trim().strip_prefix("noetl://")?;
        let of_execution = rest.strip_prefix("execution/").and_then(|rest| {
            let (execution, rest) = rest.split_once("/result/")?;
            let (name, last) = rest.rsplit_once('/')?;
            let execution = execution.parse().ok()?;
            match last.parse() {
                Ok(id) if !name.is_empty() => Some(Self::Stored { execution, name, id }),
                Ok(_) => None,
                Err(_) => blob_of_ref(uri.trim()).map(|_| Self::Content { execution }),
            }
        });
        of_execution.or_else(|| Self::object(rest))
    }

    fn object(rest: &'u str) -> Option<Self> {
        let parts: Vec<&str> = rest.split('/').collect();
        let [tenant, project, "results", execution, step, frame, row, attempt] = parts[..] else {
            return None;
        };
        let execution: ExecutionId = execution.parse().ok()?;
        if [tenant, project, step, frame, row, attempt].iter().any(|part| part.is_empty()) {
            return None;
        }
        let end = format!("/execution={execution}/results/{step}/{frame}/{row}/{attempt}.json");
        Some(Self::Object { tenant, execution, end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shape_of_a_reference_is_read() {
        let execution = ExecutionId::new(12);
        let stored = Reference::read("noetl://execution/12/result/a/b/34");
        let id = ResultId::new(34);
        assert_eq!(stored, Some(Reference::Stored { execution, name: "a/b", id }));
        let digest = "0".repeat(64);
        let content = format!("noetl://execution/12/result/load/{digest}-70000");
        assert_eq!(Reference::read(&content), Some(Reference::Content { execution }));
        let object = Reference::read("noetl://default/shop/results/12/load/0/1/2");
        let end = "/execution=12/results/load/0/1/2.json".to_owned();
        assert_eq!(object, Some(Reference::Object { tenant: "default", execution, end }));
    }

    #[test]
    fn anything_else_is_none() {
        for text in [
            "",
            "noetl://",
            "http://execution/12/result/a/34",
            "noetl://execution/12/result/34",
            "noetl://execution/x/result/a/34",
            "noetl://execution/12/result/a/b",
            "noetl://default/shop/results/12/load/0/1",
            "noetl://default/shop/results/12/load/0/1/2/3",
            "noetl://default//results/12/load/0/1/2",
            "noetl://default/shop/results/x/load/0/1/2",
        ] {
            assert_eq!(Reference::read(text), None, "{text}");
        }
    }
}
