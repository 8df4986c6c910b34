//! Auxiliary data of an execution, in its shard; blobs, in the cluster store; and the references
//! between the two.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::{CommandId, ExecutionId, ResultId, Tenant, Timestamp, Value};

use super::Sharded;
use crate::{
    BlobError, BlobPage, BlobRef, BlobRefs, Blobs, Digest, LogGap, LogLine, LogQuery, NewLine,
    NewResult, NewVariable, ResultStore, ResultSummary, SkippedLines, SpooledFile, StepLogStore,
    StoreError, Variable, VariableStore,
};

#[async_trait]
impl StepLogStore for Sharded {
    async fn pass_over_lines(
        &self,
        execution: ExecutionId,
        lost: Vec<SkippedLines>,
    ) -> Result<bool, StoreError> {
        let shard = self.of_execution(execution);
        shard.named(shard.store.pass_over_lines(execution, lost).await)
    }

    async fn append_lines(
        &self,
        execution: ExecutionId,
        lines: Vec<NewLine>,
    ) -> Result<Option<u64>, StoreError> {
        let shard = self.of_execution(execution);
        shard.named(shard.store.append_lines(execution, lines).await)
    }

    async fn lines(
        &self,
        execution: ExecutionId,
        query: LogQuery,
    ) -> Result<Vec<LogLine>, StoreError> {
        let shard = self.of_execution(execution);
        shard.named(shard.store.lines(execution, query).await)
    }

    async fn gaps(
        &self,
        execution: ExecutionId,
        command: Option<CommandId>,
    ) -> Result<Vec<LogGap>, StoreError> {
        let shard = self.of_execution(execution);
        shard.named(shard.store.gaps(execution, command).await)
    }
}

#[async_trait]
impl VariableStore for Sharded {
    async fn put_variables(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        new: Vec<NewVariable>,
    ) -> Result<(), StoreError> {
        let shard = self.of_execution(execution);
        shard.named(shard.store.put_variables(tenant, execution, new).await)
    }

    async fn read_variable(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        name: &str,
    ) -> Result<Option<Variable>, StoreError> {
        let shard = self.of_execution(execution);
        shard.named(shard.store.read_variable(tenant, execution, name).await)
    }

    async fn variables(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
    ) -> Result<Vec<Variable>, StoreError> {
        let shard = self.of_execution(execution);
        shard.named(shard.store.variables(tenant, execution).await)
    }

    async fn delete_variable(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        name: &str,
    ) -> Result<bool, StoreError> {
        let shard = self.of_execution(execution);
        shard.named(shard.store.delete_variable(tenant, execution, name).await)
    }

    async fn delete_variables(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
    ) -> Result<usize, StoreError> {
        let shard = self.of_execution(execution);
        shard.named(shard.store.delete_variables(tenant, execution).await)
    }

    async fn purge_variables(&self, limit: usize) -> Result<usize, StoreError> {
        let purged =
            self.fan_out(limit, |count| *count, |store, share| store.purge_variables(share));
        Ok(purged.await.complete()?.into_iter().map(|(_, count)| count).sum())
    }
}

#[async_trait]
impl ResultStore for Sharded {
    async fn put_result(&self, tenant: &Tenant, new: NewResult) -> Result<bool, StoreError> {
        let shard = self.of_execution(new.summary.execution);
        shard.named(shard.store.put_result(tenant, new).await)
    }

    async fn result_data(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        name: &str,
        id: ResultId,
    ) -> Result<Option<Value>, StoreError> {
        let shard = self.of_execution(execution);
        shard.named(shard.store.result_data(tenant, execution, name, id).await)
    }

    async fn results(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        after: ResultId,
        limit: usize,
    ) -> Result<Vec<ResultSummary>, StoreError> {
        let shard = self.of_execution(execution);
        shard.named(shard.store.results(tenant, execution, after, limit).await)
    }

    async fn delete_results(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        limit: usize,
    ) -> Result<usize, StoreError> {
        let shard = self.of_execution(execution);
        shard.named(shard.store.delete_results(tenant, execution, limit).await)
    }

    async fn purge_results(&self, limit: usize) -> Result<usize, StoreError> {
        let purged = self.fan_out(limit, |count| *count, |store, share| store.purge_results(share));
        Ok(purged.await.complete()?.into_iter().map(|(_, count)| count).sum())
    }
}

#[async_trait]
impl BlobRefs for Sharded {
    async fn references(&self, execution: ExecutionId) -> Result<Vec<Digest>, StoreError> {
        let shard = self.of_execution(execution);
        shard.named(shard.store.references(execution).await)
    }

    /// Returns only digests that no shard refers to. Fails if a shard is unavailable, because it
    /// may refer to them.
    async fn unreferenced(&self, among: &[Digest]) -> Result<Vec<Digest>, StoreError> {
        let free = self.all(|store| store.unreferenced(among)).await?;
        let free: Vec<HashSet<Digest>> =
            free.into_iter().map(|digests| digests.into_iter().collect()).collect();
        let is_free = |digest: &Digest| free.iter().all(|free| free.contains(digest));
        Ok(among.iter().copied().filter(is_free).collect())
    }

    async fn drop_references(&self, execution: ExecutionId) -> Result<usize, StoreError> {
        let shard = self.of_execution(execution);
        shard.named(shard.store.drop_references(execution).await)
    }
}

#[async_trait]
impl Blobs for Sharded {
    async fn put_blob(&self, bytes: Vec<u8>, media_type: &str) -> Result<BlobRef, BlobError> {
        self.cluster.named(self.cluster.store.put_blob(bytes, media_type).await)
    }

    async fn put_spooled(&self, content: Arc<SpooledFile>) -> Result<BlobRef, BlobError> {
        self.cluster.named(self.cluster.store.put_spooled(content).await)
    }

    async fn blob_part(
        &self,
        blob: &BlobRef,
        from: u64,
        most: usize,
    ) -> Result<Vec<u8>, BlobError> {
        self.cluster.named(self.cluster.store.blob_part(blob, from, most).await)
    }

    async fn touch_blob(&self, digest: Digest) -> Result<bool, BlobError> {
        self.cluster.named(self.cluster.store.touch_blob(digest).await)
    }

    async fn blob(&self, blob: &BlobRef) -> Result<Vec<u8>, BlobError> {
        self.cluster.named(self.cluster.store.blob(blob).await)
    }

    /// Checks the shards first, because the cluster store knows only its own references. A
    /// reference committed between check and removal is one whose writer exceeded the grace period.
    async fn delete_blob(&self, digest: Digest, seen: Timestamp) -> Result<bool, BlobError> {
        if self.unreferenced(&[digest]).await?.is_empty() {
            return Ok(false);
        }
        self.cluster.named(self.cluster.store.delete_blob(digest, seen).await)
    }

    async fn blobs(&self, after: Option<Digest>, limit: usize) -> Result<BlobPage, BlobError> {
        self.cluster.named(self.cluster.store.blobs(after, limit).await)
    }
}
