//! Redacts payloads and answers that callers send.

use std::sync::Arc;

use noetl_model::placeholder::{defuse, defuse_failure};
use noetl_model::{ExecutionId, Failure, Map, Tenant, Value};

use super::Executions;
use crate::journal::SubmitError;

impl Executions {
    /// Neutralizes placeholders and redacts known secrets in a payload.
    pub(super) fn clean(&self, tenant: &Tenant, given: &mut Map) {
        given.values_mut().for_each(defuse);
        self.redaction.map(tenant, given);
    }

    /// Neutralizes placeholders and redacts known secrets in an external answer to a command.
    pub(super) async fn redact(
        &self,
        id: ExecutionId,
        outcome: &mut Result<Value, Failure>,
    ) -> Result<(), SubmitError> {
        match outcome {
            Ok(data) => defuse(data),
            Err(failure) => defuse_failure(failure),
        }
        if self.redaction.is_empty() {
            return Ok(());
        }
        let tenant = self.store.tenant_of(id).await;
        let tenant = tenant.map_err(|error| SubmitError::Store(Arc::new(error)))?;
        let tenant = tenant.unwrap_or_default();
        match outcome {
            Ok(data) => self.redaction.value(&tenant, data),
            Err(failure) => self.redaction.failure(&tenant, failure),
        }
        Ok(())
    }
}
