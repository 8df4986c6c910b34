//! Auxiliary data of a [`FaultyStore`]: step logs, credentials, variables, results, objects, blobs.

use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::{CommandId, CredentialId, ExecutionId, ResultId, Tenant, Timestamp, Value};
use noetl_store::{
    BlobError, BlobPage, BlobRef, BlobRefs, Blobs, CredentialFilter, CredentialStore, Digest,
    KeychainEntry, KeychainFilter, KeychainStore, LogGap, LogLine, LogQuery, NewCredential,
    NewKeychainEntry, NewLine, NewResult, NewVariable, Object, ObjectSummary, Objects, Plugin,
    PluginSummary, Plugins, ResultStore, ResultSummary, SkippedLines, SpooledFile, StepLogStore,
    StoreError, StoredCredential, Variable, VariableStore,
};

use super::FaultyStore;

#[async_trait]
impl StepLogStore for FaultyStore {
    async fn pass_over_lines(
        &self,
        execution: ExecutionId,
        lost: Vec<SkippedLines>,
    ) -> Result<bool, StoreError> {
        self.check_up()?;
        self.inner.pass_over_lines(execution, lost).await
    }

    async fn append_lines(
        &self,
        execution: ExecutionId,
        lines: Vec<NewLine>,
    ) -> Result<Option<u64>, StoreError> {
        self.check_up()?;
        // The store owns the sender, so it outlives this call.
        let _ = self.blocks_lines.subscribe().wait_for(|blocks| !blocks).await;
        self.inner.append_lines(execution, lines).await
    }

    async fn lines(
        &self,
        execution: ExecutionId,
        query: LogQuery,
    ) -> Result<Vec<LogLine>, StoreError> {
        self.check_up()?;
        self.inner.lines(execution, query).await
    }

    async fn gaps(
        &self,
        execution: ExecutionId,
        command: Option<CommandId>,
    ) -> Result<Vec<LogGap>, StoreError> {
        self.check_up()?;
        self.inner.gaps(execution, command).await
    }
}

#[async_trait]
impl CredentialStore for FaultyStore {
    async fn put_credential(
        &self,
        tenant: &Tenant,
        new: NewCredential,
    ) -> Result<StoredCredential, StoreError> {
        self.check_up()?;
        self.inner.put_credential(tenant, new).await
    }

    async fn credential(
        &self,
        tenant: &Tenant,
        id: CredentialId,
    ) -> Result<Option<StoredCredential>, StoreError> {
        self.check_up()?;
        self.inner.credential(tenant, id).await
    }

    async fn credential_named(
        &self,
        tenant: &Tenant,
        name: &str,
    ) -> Result<Option<StoredCredential>, StoreError> {
        self.check_up()?;
        self.inner.credential_named(tenant, name).await
    }

    async fn credentials(
        &self,
        tenant: &Tenant,
        filter: &CredentialFilter,
    ) -> Result<Vec<StoredCredential>, StoreError> {
        self.check_up()?;
        self.inner.credentials(tenant, filter).await
    }

    async fn delete_credential(
        &self,
        tenant: &Tenant,
        id: CredentialId,
    ) -> Result<bool, StoreError> {
        self.check_up()?;
        self.inner.delete_credential(tenant, id).await
    }
}

#[async_trait]
impl KeychainStore for FaultyStore {
    async fn put_keychain_entry(
        &self,
        tenant: &Tenant,
        new: NewKeychainEntry,
    ) -> Result<KeychainEntry, StoreError> {
        self.check_up()?;
        self.inner.put_keychain_entry(tenant, new).await
    }

    async fn use_keychain_entry(
        &self,
        tenant: &Tenant,
        cache_key: &str,
    ) -> Result<Option<KeychainEntry>, StoreError> {
        self.check_up()?;
        self.inner.use_keychain_entry(tenant, cache_key).await
    }

    async fn keychain_entry(
        &self,
        tenant: &Tenant,
        cache_key: &str,
    ) -> Result<Option<KeychainEntry>, StoreError> {
        self.check_up()?;
        self.inner.keychain_entry(tenant, cache_key).await
    }

    async fn keychain_entries(
        &self,
        tenant: &Tenant,
        filter: &KeychainFilter,
    ) -> Result<Vec<KeychainEntry>, StoreError> {
        self.check_up()?;
        self.inner.keychain_entries(tenant, filter).await
    }

    async fn delete_keychain_entry(
        &self,
        tenant: &Tenant,
        cache_key: &str,
    ) -> Result<bool, StoreError> {
        self.check_up()?;
        self.inner.delete_keychain_entry(tenant, cache_key).await
    }

    async fn purge_keychain(&self, limit: usize) -> Result<usize, StoreError> {
        self.check_up()?;
        self.inner.purge_keychain(limit).await
    }
}

#[async_trait]
impl VariableStore for FaultyStore {
    async fn put_variables(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        new: Vec<NewVariable>,
    ) -> Result<(), StoreError> {
        self.check_up()?;
        self.inner.put_variables(tenant, execution, new).await
    }

    async fn read_variable(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        name: &str,
    ) -> Result<Option<Variable>, StoreError> {
        self.check_up()?;
        self.inner.read_variable(tenant, execution, name).await
    }

    async fn variables(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
    ) -> Result<Vec<Variable>, StoreError> {
        self.check_up()?;
        self.inner.variables(tenant, execution).await
    }

    async fn delete_variable(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        name: &str,
    ) -> Result<bool, StoreError> {
        self.check_up()?;
        self.inner.delete_variable(tenant, execution, name).await
    }

    async fn delete_variables(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
    ) -> Result<usize, StoreError> {
        self.check_up()?;
        self.inner.delete_variables(tenant, execution).await
    }

    async fn purge_variables(&self, limit: usize) -> Result<usize, StoreError> {
        self.check_up()?;
        self.inner.purge_variables(limit).await
    }
}

#[async_trait]
impl ResultStore for FaultyStore {
    async fn put_result(&self, tenant: &Tenant, new: NewResult) -> Result<bool, StoreError> {
        self.check_up()?;
        self.inner.put_result(tenant, new).await
    }

    async fn result_data(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        name: &str,
        id: ResultId,
    ) -> Result<Option<Value>, StoreError> {
        self.check_up()?;
        self.inner.result_data(tenant, execution, name, id).await
    }

    async fn results(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        after: ResultId,
        limit: usize,
    ) -> Result<Vec<ResultSummary>, StoreError> {
        self.check_up()?;
        self.inner.results(tenant, execution, after, limit).await
    }

    async fn delete_results(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        limit: usize,
    ) -> Result<usize, StoreError> {
        self.check_up()?;
        self.inner.delete_results(tenant, execution, limit).await
    }

    async fn purge_results(&self, limit: usize) -> Result<usize, StoreError> {
        self.check_up()?;
        self.inner.purge_results(limit).await
    }
}

#[async_trait]
impl Objects for FaultyStore {
    async fn put_object(
        &self,
        key: &str,
        media_type: &str,
        bytes: Vec<u8>,
    ) -> Result<ObjectSummary, StoreError> {
        self.check_up()?;
        self.inner.put_object(key, media_type, bytes).await
    }

    async fn object(&self, key: &str) -> Result<Option<Object>, StoreError> {
        self.check_up()?;
        self.inner.object(key).await
    }

    async fn delete_object(&self, key: &str) -> Result<bool, StoreError> {
        self.check_up()?;
        self.inner.delete_object(key).await
    }

    async fn objects(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ObjectSummary>, StoreError> {
        self.check_up()?;
        self.inner.objects(prefix, after, limit).await
    }

    async fn objects_ending(
        &self,
        suffix: &str,
        limit: usize,
    ) -> Result<Vec<ObjectSummary>, StoreError> {
        self.check_up()?;
        self.inner.objects_ending(suffix, limit).await
    }
}

#[async_trait]
impl Plugins for FaultyStore {
    async fn put_plugin(
        &self,
        path: &str,
        version: i32,
        media_type: &str,
        bytes: Vec<u8>,
    ) -> Result<PluginSummary, StoreError> {
        self.check_up()?;
        self.inner.put_plugin(path, version, media_type, bytes).await
    }

    async fn plugin(&self, path: &str, version: Option<i32>) -> Result<Option<Plugin>, StoreError> {
        self.check_up()?;
        self.inner.plugin(path, version).await
    }

    async fn delete_plugin(&self, path: &str, version: i32) -> Result<bool, StoreError> {
        self.check_up()?;
        self.inner.delete_plugin(path, version).await
    }

    async fn plugins(
        &self,
        prefix: &str,
        after: Option<(&str, i32)>,
        limit: usize,
    ) -> Result<Vec<PluginSummary>, StoreError> {
        self.check_up()?;
        self.inner.plugins(prefix, after, limit).await
    }
}

#[async_trait]
impl Blobs for FaultyStore {
    async fn put_blob(&self, bytes: Vec<u8>, media_type: &str) -> Result<BlobRef, BlobError> {
        self.check_up()?;
        self.inner.put_blob(bytes, media_type).await
    }

    async fn put_spooled(&self, content: Arc<SpooledFile>) -> Result<BlobRef, BlobError> {
        self.check_up()?;
        self.inner.put_spooled(content).await
    }

    async fn blob_part(
        &self,
        blob: &BlobRef,
        from: u64,
        most: usize,
    ) -> Result<Vec<u8>, BlobError> {
        self.check_up()?;
        self.inner.blob_part(blob, from, most).await
    }

    async fn touch_blob(&self, digest: Digest) -> Result<bool, BlobError> {
        self.check_up()?;
        self.inner.touch_blob(digest).await
    }

    async fn blob(&self, blob: &BlobRef) -> Result<Vec<u8>, BlobError> {
        self.check_up()?;
        self.inner.blob(blob).await
    }

    async fn delete_blob(&self, digest: Digest, seen: Timestamp) -> Result<bool, BlobError> {
        self.check_up()?;
        self.inner.delete_blob(digest, seen).await
    }

    async fn blobs(&self, after: Option<Digest>, limit: usize) -> Result<BlobPage, BlobError> {
        self.check_up()?;
        self.inner.blobs(after, limit).await
    }
}

#[async_trait]
impl BlobRefs for FaultyStore {
    async fn references(&self, execution: ExecutionId) -> Result<Vec<Digest>, StoreError> {
        self.check_up()?;
        self.inner.references(execution).await
    }

    async fn unreferenced(&self, among: &[Digest]) -> Result<Vec<Digest>, StoreError> {
        self.check_up()?;
        self.inner.unreferenced(among).await
    }

    async fn drop_references(&self, execution: ExecutionId) -> Result<usize, StoreError> {
        self.check_up()?;
        self.inner.drop_references(execution).await
    }
}
