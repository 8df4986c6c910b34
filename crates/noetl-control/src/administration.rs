//! Changes of who may ask and of what is secret: each is recorded in the audit before it is made.
//!
//! A change that cannot be recorded is made all the same, and said in the log, unless the audit is
//! required; then it is not made. [`DirectTokens`] records what is done to tokens past a control plane.

mod direct;

use noetl_model::{CredentialId, ExecutionId, Tenant};
use noetl_store::{Credential, Grant, NewGrant, StoreError, Token};
use tracing::warn;

use crate::Control;
use crate::audit::{Asking, Given, SecretUses};
use crate::credentials::{CredentialError, CredentialRequest, Credentials};
use crate::grants::{GrantError, GrantRequest, Grants};
use crate::tokens::{TokenError, TokenRequest, Tokens};

pub use direct::DirectTokens;

/// Who makes the first token of a database.
const FIRST_START: &str = "the first start";

/// The service. `who` is whoever changes something, as the audit names it. Cheap to clone.
#[derive(Clone)]
pub struct Administration {
    credentials: Credentials,
    grants: Grants,
    recorded: Recorded,
}

/// Names a grant in the audit.
fn described(grant: &NewGrant) -> String {
    let NewGrant { id, kind, target, subject, prefix } = grant;
    let subject = subject.as_deref().map(|subject| format!(" to {subject}")).unwrap_or_default();
    format!("{} {target} on {prefix}/{subject} ({id})", kind.as_str())
}

impl Control {
    /// Changes of credentials and tokens, recorded.
    pub fn administration(&self) -> Administration {
        let Self { credentials, tokens, uses, grants, .. } = self;
        let recorded = Recorded { tokens: tokens.clone(), uses: uses.clone() };
        Administration { credentials: credentials.clone(), grants: grants.clone(), recorded }
    }
}

impl Administration {
    /// Keeps a credential, in the place of any of its name.
    pub async fn put_credential(
        &self,
        tenant: &Tenant,
        who: &str,
        request: CredentialRequest,
    ) -> Result<Credential, CredentialError> {
        Credentials::check(&request)?;
        let recorded = self.recorded.record(tenant, who, "credential.put", &request.name).await;
        recorded.map_err(CredentialError::ChangeUnrecorded)?;
        self.credentials.put(tenant, request).await
    }

    /// Removes a credential.
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

    /// Makes a token. The text is what its holder shows; it cannot be had again.
    pub async fn create_token(
        &self,
        tenant: &Tenant,
        who: &str,
        request: TokenRequest,
    ) -> Result<(Token, String), TokenError> {
        self.recorded.create(tenant, who, request).await
    }

    /// Ends a tenant's token. Whether there is one.
    pub async fn revoke_token(
        &self,
        tenant: &Tenant,
        who: &str,
        id: &str,
    ) -> Result<bool, TokenError> {
        self.recorded.revoke(tenant, who, id).await
    }

    /// Records an action of a caller on a document or an execution, before it is done. An error means
    /// that it must not be.
    pub async fn record_action(
        &self,
        tenant: &Tenant,
        who: &str,
        operation: &'static str,
        what: &str,
        execution: Option<ExecutionId>,
    ) -> Result<(), StoreError> {
        let who = who.to_owned();
        let asking = Asking { who, operation, execution, parent: None, worker: None };
        self.recorded.uses.record(tenant, &asking, what, Given::Ok, None).await
    }

    /// Records the change in the audit, then stores the grant under a new ID.
    ///
    /// # Errors
    ///
    /// [`GrantError::Unrecorded`] if the audit cannot be written; then nothing is stored.
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

    /// Removes a grant. Returns whether there was one.
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

    /// Makes a token for an admin of the default tenant if nobody has one. It is recorded once it is
    /// made, as only then it is known that it is the first.
    pub async fn create_first_token(&self) -> Result<Option<String>, TokenError> {
        let Recorded { tokens, .. } = &self.recorded;
        let Some((token, shown)) = tokens.create_first().await? else { return Ok(None) };
        let name = named(&token.kept.name, &token.kept.id);
        let recorded = self.recorded.record(&token.tenant, FIRST_START, "token.create", &name);
        if let Err(error) = recorded.await {
            // It is there, and would be of no use to anybody if it were not shown.
            warn!(cause = &error as &dyn std::error::Error, "the first token is not recorded");
        }
        Ok(Some(shown))
    }
}

/// Changes of tokens, recorded.
#[derive(Clone)]
struct Recorded {
    tokens: Tokens,
    uses: SecretUses,
}

impl Recorded {
    async fn create(
        &self,
        tenant: &Tenant,
        who: &str,
        request: TokenRequest,
    ) -> Result<(Token, String), TokenError> {
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
        let asking =
            Asking { who: who.to_owned(), operation, execution: None, parent: None, worker: None };
        self.uses.record(tenant, &asking, what, Given::Ok, None).await
    }
}

/// A token as callers are named: names are not unique.
fn named(name: &str, id: &str) -> String {
    format!("{name} ({id})")
}
