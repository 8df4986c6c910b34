//! Changes to access and secrets (credentials, tokens, and grants), recorded in the audit before
//! they are made.
//!
//! If the audit cannot be written, the change is still made and a warning is logged. If the audit
//! is required, the change is not made. [`DirectTokens`] records token changes that bypass a
//! control plane.

mod direct;

use noetl_model::{CredentialId, ExecutionId, Tenant};
use noetl_store::{AccessToken, Grant, NewGrant, StoreError, StoredCredential};
use tracing::warn;

use crate::service::Secrets;
use crate::{CredentialError, CredentialRequest, Credentials};
use crate::{GrantError, GrantRequest, Grants};
use crate::{SecretAuditLog, SecretOutcome, SecretRequest};
use crate::{TokenError, TokenRequest, Tokens};

pub use direct::DirectTokens;

/// Caller that the audit names for the first token of a database.
const FIRST_START: &str = "the first start";

/// Audited changes to credentials, tokens, and grants. `who` identifies the caller in the audit.
/// Cheap to clone.
#[derive(Clone)]
pub struct Administration {
    credentials: Credentials,
    grants: Grants,
    recorded: Recorded,
}

/// Returns the description of a grant in the audit.
fn described(grant: &NewGrant) -> String {
    let NewGrant { id, kind, target, subject, prefix } = grant;
    let subject = subject.as_deref().map(|subject| format!(" to {subject}")).unwrap_or_default();
    format!("{} {target} on {prefix}/{subject} ({id})", kind.as_str())
}

impl Secrets {
    /// Returns the service for audited changes to credentials, tokens, and grants.
    pub fn administration(&self) -> Administration {
        let Self { credentials, tokens, audit, grants, .. } = self;
        let recorded = Recorded { tokens: tokens.clone(), uses: audit.clone() };
        Administration { credentials: credentials.clone(), grants: grants.clone(), recorded }
    }
}

impl Administration {
    /// Stores a credential. Replaces an existing one of the same name.
    pub async fn put_credential(
        &self,
        tenant: &Tenant,
        who: &str,
        request: CredentialRequest,
    ) -> Result<StoredCredential, CredentialError> {
        Credentials::check(&request)?;
        let recorded = self.recorded.record(tenant, who, "credential.put", &request.name).await;
        recorded.map_err(CredentialError::ChangeUnrecorded)?;
        self.credentials.put(tenant, request).await
    }

    /// Deletes a credential by ID or name.
    pub async fn delete_credential(
        &self,
        tenant: &Tenant,
        who: &str,
        identifier: &str,
    ) -> Result<CredentialId, CredentialError> {
        let name = self.credentials.get(tenant, identifier).await?.kept.name;
        let recorded = self.recorded.record(tenant, who, "credential.delete", &name).await;
        recorded.map_err(CredentialError::ChangeUnrecorded)?;
        self.credentials.delete(tenant, identifier).await
    }

    /// Creates an access token. Returns it with its secret text, which cannot be read later.
    pub async fn create_token(
        &self,
        tenant: &Tenant,
        who: &str,
        request: TokenRequest,
    ) -> Result<(AccessToken, String), TokenError> {
        self.recorded.create(tenant, who, request).await
    }

    /// Revokes a tenant's access token. Returns `false` if the tenant has no token with this ID.
    pub async fn revoke_token(
        &self,
        tenant: &Tenant,
        who: &str,
        id: &str,
    ) -> Result<bool, TokenError> {
        self.recorded.revoke(tenant, who, id).await
    }

    /// Records an action of a caller on a document or an execution, before the action. On an error,
    /// the caller must not perform the action.
    pub async fn record_action(
        &self,
        tenant: &Tenant,
        who: &str,
        operation: &'static str,
        what: &str,
        execution: Option<ExecutionId>,
    ) -> Result<(), StoreError> {
        let who = who.to_owned();
        let asking = SecretRequest { who, operation, execution, parent: None, worker: None };
        self.recorded.uses.record(tenant, &asking, what, SecretOutcome::Ok, None).await
    }

    /// Records the change in the audit, then stores the grant under a new ID.
    ///
    /// # Errors
    ///
    /// [`GrantError::Unrecorded`] if the audit is required and cannot be written; then nothing is
    /// stored.
    pub async fn create_grant(
        &self,
        tenant: &Tenant,
        who: &str,
        request: GrantRequest,
    ) -> Result<Grant, GrantError> {
        let new = Grants::minted(request)?;
        let recorded = self.recorded.record(tenant, who, "grant.create", &described(&new)).await;
        recorded.map_err(GrantError::Unrecorded)?;
        self.grants.put(tenant, new).await
    }

    /// Removes a grant. Returns `false` if the tenant has no grant with this ID.
    pub async fn remove_grant(
        &self,
        tenant: &Tenant,
        who: &str,
        id: &str,
    ) -> Result<bool, GrantError> {
        let known = self.grants.list(tenant).await.map_err(GrantError::Store)?;
        let Some(grant) = known.into_iter().find(|grant| grant.kept.id == id) else {
            return Ok(false);
        };
        let recorded =
            self.recorded.record(tenant, who, "grant.remove", &described(&grant.kept)).await;
        recorded.map_err(GrantError::Unrecorded)?;
        self.grants.remove(tenant, id).await.map_err(GrantError::Store)
    }

    /// Creates an admin token for the default tenant if the database has no token. Records it
    /// afterward, because only then is it known to be the first.
    pub async fn create_first_token(&self) -> Result<Option<String>, TokenError> {
        let Recorded { tokens, .. } = &self.recorded;
        let Some((token, shown)) = tokens.create_first().await? else { return Ok(None) };
        let name = named(&token.kept.name, &token.kept.id);
        let recorded = self.recorded.record(&token.tenant, FIRST_START, "token.create", &name);
        if let Err(error) = recorded.await {
            // The token exists and would be useless if it were not shown.
            warn!(cause = &error as &dyn std::error::Error, "failed to audit first token");
        }
        Ok(Some(shown))
    }
}

/// Audited changes to access tokens.
#[derive(Clone)]
struct Recorded {
    tokens: Tokens,
    uses: SecretAuditLog,
}

impl Recorded {
    async fn create(
        &self,
        tenant: &Tenant,
        who: &str,
        request: TokenRequest,
    ) -> Result<(AccessToken, String), TokenError> {
        let (new, shown) = self.tokens.minted(request)?;
        let name = named(&new.name, &new.id);
        let recorded = self.record(tenant, who, "token.create", &name).await;
        recorded.map_err(TokenError::Unrecorded)?;
        Ok((self.tokens.keep(tenant, new).await?, shown))
    }

    async fn revoke(&self, tenant: &Tenant, who: &str, id: &str) -> Result<bool, TokenError> {
        let known = self.tokens.list(tenant).await.map_err(TokenError::Store)?;
        let Some(token) = known.into_iter().find(|token| token.kept.id == id) else {
            return Ok(false);
        };
        let name = named(&token.kept.name, id);
        let recorded = self.record(tenant, who, "token.revoke", &name).await;
        recorded.map_err(TokenError::Unrecorded)?;
        self.tokens.revoke(tenant, id).await.map_err(TokenError::Store)
    }

    async fn record(
        &self,
        tenant: &Tenant,
        who: &str,
        operation: &'static str,
        what: &str,
    ) -> Result<(), StoreError> {
        let asking = SecretRequest {
            who: who.to_owned(),
            operation,
            execution: None,
            parent: None,
            worker: None,
        };
        self.uses.record(tenant, &asking, what, SecretOutcome::Ok, None).await
    }
}

/// Returns the description of a token in the audit. Includes the ID, because names are not unique.
fn named(name: &str, id: &str) -> String {
    format!("{name} ({id})")
}
