//! Claims of published workers: encodes a command in their format with all values it needs.
//!
//! All lookups happen before the claim, so a store that is unavailable leaves the command
//! claimable. If a value can never be resolved, the command fails with the reason. Otherwise
//! workers would poll for it and be rejected forever.

use std::collections::HashMap;
use std::sync::Arc;

use noetl_compat::{self as compat, CompatCommand, Dialect, ResolvedValues};
use noetl_engine::{Fail, Input};
use noetl_journal::{Journal, SubmitError, TenantScope};
use noetl_model::event::CommandSpec;
use noetl_model::{CommandId, ExecutionId, Failure, FailureKind, Map, Tenant, Value};
use noetl_results::{ResultError, ResultStorage};
use noetl_secrets::{CredentialError, Credentials, KeychainService, RevealedSecret, SecretRequest};
use noetl_store::{CommandRow, ExecutionRow, RemoteStore, StoreError};
use noetl_work::ResolvedPlaceholder;
use noetl_work::reveal::{collect, collect_map, replace, replace_in};

use crate::reports::{ReportError, Reports};

/// Command claimed by a published worker.
#[derive(Debug, Clone)]
pub struct ClaimedCommand {
    /// Command row as of before the claim.
    pub row: CommandRow,
    pub of: ExecutionRow,
    pub issued: Arc<CommandSpec>,
    /// Command in the published worker's format.
    pub lowered: CompatCommand,
}

#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// No command with this ID exists in the worker's tenant scope.
    #[error("command not found: {0}")]
    Unknown(CommandId),
    /// Published workers cannot run the command.
    #[error("{0}; only a worker that renews leases can run the command")]
    Lacking(String),
    /// A value the command needs can never be resolved. The command has failed.
    #[error("the command has failed: {0}")]
    Failed(String),
    #[error(transparent)]
    Report(ReportError),
    /// A dependency is unavailable. The command stays claimable.
    #[error("store is unavailable")]
    Store(#[source] StoreError),
}

/// Claims commands for published workers. Cheap to clone.
#[derive(Clone)]
pub struct PublishedClaims {
    store: Arc<dyn RemoteStore>,
    journal: Journal,
    reports: Reports,
    results: ResultStorage,
    credentials: Credentials,
    keychain: KeychainService,
}

enum Missing {
    /// Permanent: the command fails.
    For(Failure),
    /// Transient: the claim can be retried.
    Now(StoreError),
}

impl From<CredentialError> for Missing {
    fn from(error: CredentialError) -> Self {
        match error {
            CredentialError::Store(error)
            | CredentialError::Unrecorded(error)
            | CredentialError::ChangeUnrecorded(error) => Self::Now(error),
            other => Self::For(Failure::new(FailureKind::Auth, other.to_string())),
        }
    }
}

impl From<ResultError> for Missing {
    fn from(error: ResultError) -> Self {
        match error.is_transient() {
            true => Self::Now(StoreError::backend("read a value", error)),
            false => {
                let message = format!("a value it names cannot be read: {error}");
                Self::For(Failure::new(FailureKind::TemplateError, message))
            }
        }
    }
}

impl PublishedClaims {
    pub(crate) fn new(
        reports: &Reports,
        credentials: &Credentials,
        keychain: &KeychainService,
    ) -> Self {
        Self {
            store: reports.store.clone(),
            journal: reports.journal.clone(),
            reports: reports.clone(),
            results: reports.results.clone(),
            credentials: credentials.clone(),
            keychain: keychain.clone(),
        }
    }

    /// Claims a command for a published worker.
    pub async fn claim(
        &self,
        scope: &TenantScope,
        command: CommandId,
        worker: &str,
        actor: &str,
        dialect: Dialect,
    ) -> Result<ClaimedCommand, ClaimError> {
        let found = self.reports.command(command).await.map_err(ClaimError::Store)?;
        let (row, issued) = found.ok_or(ClaimError::Unknown(command))?;
        if row.state.is_terminal() {
            // The rejected claim carries the precise reason why the command ended.
            self.reports.claim(scope, command, worker).await.map_err(ClaimError::Report)?;
        }
        let of = self.store.tenant_of(row.execution).await.map_err(ClaimError::Store)?;
        let tenant = of.filter(|of| scope.as_ref().is_none_or(|scope| scope == of));
        let tenant = tenant.ok_or(ClaimError::Unknown(command))?;
        let of = self.store.execution(&tenant, row.execution).await.map_err(ClaimError::Store)?;
        let of = of.ok_or(ClaimError::Unknown(command))?;
        if let Some(why) = compat::unsupported_reason(&issued) {
            return Err(ClaimError::Lacking(why));
        }
        let looked = self.look_up(&tenant, row.execution, (worker, actor), &issued).await;
        let (whole, found) = match looked {
            Ok(looked) => looked,
            Err(Missing::Now(error)) => return Err(ClaimError::Store(error)),
            Err(Missing::For(failure)) => return self.fail(scope, &row, worker, failure).await,
        };
        let lowered = compat::encode_command(row.execution, &whole, &found, dialect);
        let lowered = lowered.map_err(ClaimError::Lacking)?;
        let row = self.reports.claim(scope, command, worker).await.map_err(ClaimError::Report)?;
        Ok(ClaimedCommand { row, of, issued, lowered })
    }

    /// Claims a command that no published worker can run in the name of `worker`, and fails it.
    async fn fail(
        &self,
        scope: &TenantScope,
        row: &CommandRow,
        worker: &str,
        failure: Failure,
    ) -> Result<ClaimedCommand, ClaimError> {
        self.reports.claim(scope, row.id, worker).await.map_err(ClaimError::Report)?;
        let told = failure.to_string();
        let (ctx, step) = (Map::new(), Map::new());
        let input = Input::Fail(Fail { command: row.id, failure, ctx, step });
        match self.journal.submit(row.execution, input).await {
            Ok(_) | Err(SubmitError::Refused(_)) => Err(ClaimError::Failed(told)),
            Err(error) => Err(ClaimError::Report(ReportError::Submit(error))),
        }
    }

    /// Returns the command with its placeholders replaced by secrets, and the values its templates
    /// refer to.
    async fn look_up(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        (worker, actor): (&str, &str),
        issued: &Arc<CommandSpec>,
    ) -> Result<(Arc<CommandSpec>, ResolvedValues), Missing> {
        let asking = SecretRequest {
            who: actor.to_owned(),
            operation: "claim",
            execution: Some(execution),
            parent: None,
            worker: Some(worker.to_owned()),
        };
        let mut found = ResolvedValues::default();
        let scope = issued.scope.as_deref();
        for blob in scope.iter().flat_map(|scope| &scope.blobs) {
            let bytes = self.results.read(&blob.reference).await?;
            let value = serde_json::from_slice(&bytes).map_err(|error| {
                let message = format!("a value it names is no JSON: {error}");
                Missing::For(Failure::new(FailureKind::TemplateError, message))
            })?;
            found.blobs.push(value);
        }
        for name in scope.iter().flat_map(|scope| scope.keychain.keys()) {
            let data = match self.keychain.reveal(tenant, name, &asking).await? {
                RevealedSecret::Stored(_, data) | RevealedSecret::Keychain { data, .. } => data,
            };
            found.keychain.insert(name.clone(), data);
        }
        let Some(known) = self.meanings(tenant, &asking, issued, &found).await? else {
            return Ok((issued.clone(), found));
        };
        let mut whole = (**issued).clone();
        replace_in(&mut whole.config, &known);
        replace_in(&mut whole.input, &known);
        if let Some(scope) = &mut whole.scope {
            for map in [&mut scope.workload, &mut scope.ctx, &mut scope.steps, &mut scope.earlier] {
                replace_in(map, &known);
            }
            scope.previous.iter_mut().for_each(|value| replace(value, &known));
            scope.iteration.iter_mut().for_each(|iteration| replace(&mut iteration.item, &known));
        }
        found.blobs.iter_mut().for_each(|value| replace(value, &known));
        Ok((Arc::new(whole), found))
    }

    /// Returns the values that the placeholders in a command stand for, or `None` if it has none.
    async fn meanings(
        &self,
        tenant: &Tenant,
        asking: &SecretRequest,
        issued: &CommandSpec,
        found: &ResolvedValues,
    ) -> Result<Option<HashMap<String, Value>>, Missing> {
        let mut texts = Vec::new();
        for map in [&issued.config, &issued.input] {
            collect_map(map, &mut texts);
        }
        if let Some(scope) = issued.scope.as_deref() {
            for map in [&scope.workload, &scope.ctx, &scope.steps, &scope.earlier] {
                collect_map(map, &mut texts);
            }
            scope.previous.iter().for_each(|value| collect(value, &mut texts));
            scope.iteration.iter().for_each(|iteration| collect(&iteration.item, &mut texts));
        }
        found.blobs.iter().for_each(|value| collect(value, &mut texts));
        if texts.is_empty() {
            return Ok(None);
        }
        let mut known = HashMap::new();
        for text in texts {
            if known.contains_key(&text) {
                continue;
            }
            let resolved = self.credentials.resolve(tenant, &text, asking).await?;
            if let ResolvedPlaceholder::Value { value, .. } = resolved {
                known.insert(text, value);
            }
        }
        Ok(Some(known))
    }
}
