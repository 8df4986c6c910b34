//! Sealed rows, the audit of secrets, tokens and grants of a [`FaultyStore`].

use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::Tenant;
use noetl_store::{
    AccessToken, AuditChain, AuditFilter, AuditLink, Grant, Grants, NewGrant, NewToken,
    SealedLocation, SealedRecordStore, SealedRow, SealedText, SecretAuditStore, SecretUse,
    StoreError, TokenStore,
};

use super::FaultyStore;

#[async_trait]
impl SealedRecordStore for FaultyStore {
    async fn sealed_rows(
        &self,
        after: Option<&SealedLocation>,
        limit: usize,
    ) -> Result<Vec<SealedRow>, StoreError> {
        self.check_up()?;
        self.inner.sealed_rows(after, limit).await
    }

    async fn reseal(
        &self,
        location: &SealedLocation,
        was: &SealedText,
        now: &SealedText,
    ) -> Result<bool, StoreError> {
        self.check_up()?;
        self.inner.reseal(location, was, now).await
    }

    async fn sealed_setting(&self, name: &str) -> Result<Option<SealedText>, StoreError> {
        self.check_up()?;
        self.inner.sealed_setting(name).await
    }

    async fn put_sealed_setting(
        &self,
        name: &str,
        new: &SealedText,
    ) -> Result<SealedText, StoreError> {
        self.check_up()?;
        self.inner.put_sealed_setting(name, new).await
    }
}

#[async_trait]
impl SecretAuditStore for FaultyStore {
    async fn audit_secret(&self, tenant: &Tenant, used: SecretUse) -> Result<bool, StoreError> {
        self.check_up()?;
        if self.no_audit.load(Ordering::SeqCst) {
            return Err(StoreError::backend("record the use of a secret", "told to fail"));
        }
        self.inner.audit_secret(tenant, used).await
    }

    async fn secret_uses(
        &self,
        tenant: &Tenant,
        filter: &AuditFilter,
    ) -> Result<Vec<SecretUse>, StoreError> {
        self.check_up()?;
        self.inner.secret_uses(tenant, filter).await
    }

    async fn audit_chain(&self) -> Result<AuditChain, StoreError> {
        self.check_up()?;
        self.inner.audit_chain().await
    }

    async fn audit_links(&self, after: i64, limit: usize) -> Result<Vec<AuditLink>, StoreError> {
        self.check_up()?;
        self.inner.audit_links(after, limit).await
    }

    async fn purge_secret_uses(&self, age: Duration, limit: usize) -> Result<usize, StoreError> {
        self.check_up()?;
        self.inner.purge_secret_uses(age, limit).await
    }
}

#[async_trait]
impl Grants for FaultyStore {
    async fn put_grant(&self, tenant: &Tenant, new: NewGrant) -> Result<Grant, StoreError> {
        self.check_up()?;
        self.inner.put_grant(tenant, new).await
    }

    async fn grants(&self, tenant: &Tenant) -> Result<Vec<Grant>, StoreError> {
        self.check_up()?;
        self.inner.grants(tenant).await
    }

    async fn remove_grant(&self, tenant: &Tenant, id: &str) -> Result<bool, StoreError> {
        self.check_up()?;
        self.inner.remove_grant(tenant, id).await
    }
}

#[async_trait]
impl TokenStore for FaultyStore {
    async fn put_token(&self, tenant: &Tenant, new: NewToken) -> Result<AccessToken, StoreError> {
        self.check_up()?;
        self.inner.put_token(tenant, new).await
    }

    async fn put_first_token(
        &self,
        tenant: &Tenant,
        new: NewToken,
    ) -> Result<Option<AccessToken>, StoreError> {
        self.check_up()?;
        self.inner.put_first_token(tenant, new).await
    }

    async fn token(&self, id: &str) -> Result<Option<AccessToken>, StoreError> {
        self.check_up()?;
        self.inner.token(id).await
    }

    async fn tokens(&self, tenant: &Tenant) -> Result<Vec<AccessToken>, StoreError> {
        self.check_up()?;
        self.inner.tokens(tenant).await
    }

    async fn revoke_token(&self, tenant: &Tenant, id: &str) -> Result<bool, StoreError> {
        self.check_up()?;
        self.inner.revoke_token(tenant, id).await
    }
}
