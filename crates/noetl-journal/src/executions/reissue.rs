//! Replaces the placeholders of one execution with those of another that starts with its values.

use std::collections::HashMap;
use std::sync::Arc;

use noetl_engine::{Fork, Input, StartInput};
use noetl_model::event::BlobRef;
use noetl_model::row::EventRow;
use noetl_model::{Event, ExecutionId, Fact, Tenant};
use noetl_store::StoreError;

use super::{Executions, PreparedStart, StartError, StartRequest};

impl Executions {
    /// Prepares the start of a child. Placeholders passed by its parent are replaced with its own.
    pub(crate) async fn prepare_child(
        &self,
        tenant: &Tenant,
        of: (ExecutionId, ExecutionId),
        mut request: StartRequest,
    ) -> Result<PreparedStart, StartError> {
        let reissued = self.placeholders.reissue_map(tenant, of, &mut request.payload).await;
        reissued.map_err(StartError::Store)?;
        self.redaction.map(tenant, &mut request.payload);
        self.find_and_compile(tenant, request).await
    }

    /// Returns the input with the placeholders of the origin execution replaced by those of the new
    /// one. Replaces only placeholders that are valid in the origin. `of` is the pair of origin and
    /// new execution.
    pub(super) async fn reissued(
        &self,
        tenant: &Tenant,
        of: (ExecutionId, ExecutionId),
        input: &Input,
    ) -> Result<Input, StoreError> {
        match input {
            Input::Start(start) => {
                let mut start = StartInput::clone(start);
                self.placeholders.reissue_map(tenant, of, &mut start.payload).await?;
                Ok(Input::Start(Box::new(start)))
            }
            Input::Fork(fork) => {
                let mut fork = Fork::clone(fork);
                fork.log = self.reissued_log(tenant, of, &fork.log).await?;
                Ok(Input::Fork(Box::new(fork)))
            }
            other => Ok(other.clone()),
        }
    }

    async fn reissued_log(
        &self,
        tenant: &Tenant,
        of: (ExecutionId, ExecutionId),
        log: &Arc<[Event]>,
    ) -> Result<Arc<[Event]>, StoreError> {
        let mut made: Vec<Event> = Vec::with_capacity(log.len());
        let mut blobs: HashMap<Arc<str>, Option<Arc<BlobRef>>> = HashMap::new();
        for event in &**log {
            let mut event = self.reissued_event(tenant, of, event).await?;
            self.reissue_blobs(tenant, of, &mut event, &mut blobs).await?;
            made.push(event);
        }
        Ok(Arc::from(made))
    }

    async fn reissued_event(
        &self,
        tenant: &Tenant,
        of: (ExecutionId, ExecutionId),
        event: &Event,
    ) -> Result<Event, StoreError> {
        let mut row = EventRow::from(event);
        let mut is_changed = false;
        for text in [&mut row.context, &mut row.result, &mut row.meta, &mut row.error] {
            let Some(whole) = text.as_deref() else { continue };
            if let Some(reissued) = self.placeholders.reissue_text(tenant, of, whole).await? {
                *text = Some(reissued);
                is_changed = true;
            }
        }
        if !is_changed {
            return Ok(event.clone());
        }
        row.decode().map_err(|error| StoreError::backend("read an event", error))
    }

    /// Replaces references to blobs that contain placeholders.
    async fn reissue_blobs(
        &self,
        tenant: &Tenant,
        of: (ExecutionId, ExecutionId),
        event: &mut Event,
        known: &mut HashMap<Arc<str>, Option<Arc<BlobRef>>>,
    ) -> Result<(), StoreError> {
        let references: Vec<Arc<BlobRef>> = match &event.fact {
            Fact::CallDone { reference: Some(reference), .. } => vec![reference.clone()],
            Fact::CommandIssued(issued) => {
                let scope = issued.scope.as_deref();
                scope.iter().flat_map(|scope| &scope.blobs).map(|it| it.reference.clone()).collect()
            }
            _ => return Ok(()),
        };
        for reference in &references {
            if !known.contains_key(&reference.digest) {
                let other = self.reissued_blob(tenant, of, reference).await?;
                known.insert(reference.digest.clone(), other.map(Arc::new));
            }
        }
        let other = |reference: &BlobRef| known.get(&reference.digest).cloned().flatten();
        match &mut event.fact {
            Fact::CallDone { reference: Some(reference), .. } => {
                if let Some(other) = other(reference) {
                    *reference = other;
                }
            }
            Fact::CommandIssued(issued) if references.iter().any(|it| other(it).is_some()) => {
                let issued = Arc::make_mut(issued);
                let scope = issued.scope.as_mut();
                for blob in scope.into_iter().flat_map(|scope| &mut scope.blobs) {
                    if let Some(other) = other(&blob.reference) {
                        blob.reference = other;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Stores a blob with its placeholders replaced. Returns `None` if the blob has none or is
    /// missing.
    async fn reissued_blob(
        &self,
        tenant: &Tenant,
        of: (ExecutionId, ExecutionId),
        reference: &BlobRef,
    ) -> Result<Option<BlobRef>, StoreError> {
        let bytes = match self.results.read(reference).await {
            Ok(bytes) => bytes,
            Err(error) if error.is_transient() => {
                return Err(StoreError::backend("read a value", error));
            }
            Err(_) => return Ok(None),
        };
        let Ok(text) = String::from_utf8(bytes) else { return Ok(None) };
        let Some(text) = self.placeholders.reissue_text(tenant, of, &text).await? else {
            return Ok(None);
        };
        let Ok(value) = serde_json::from_str(&text) else { return Ok(None) };
        let put = self.results.put(&value).await;
        put.map(Some).map_err(|error| StoreError::backend("keep a value", error))
    }
}
