//! Placeholders that stand for fields of credentials.

use std::collections::BTreeMap;

use noetl_model::placeholder::placeholders_in;
use noetl_model::{ExecutionId, Tenant, Value};

use super::{CredentialError, Credentials};
use crate::audit::Asking;
use crate::redaction::reveal::at;
use crate::redaction::secret_names;

/// Outcome of resolving a placeholder.
#[derive(Debug, Clone, PartialEq)]
pub enum Resolved {
    /// It stands for this value.
    Value {
        /// Name of the credential.
        alias: String,
        /// Field of the credential.
        field: String,
        /// Value of the field.
        value: Value,
    },
    /// It was made for the execution, and its value is not stored: it is a token, or is gone.
    Named {
        /// Name of the secret.
        alias: String,
        /// Field of the secret.
        field: String,
    },
    /// It was not made for the execution.
    Text,
}

impl Credentials {
    /// Returns the value that a placeholder stands for in an execution. Everything that was not made
    /// for this execution by a control plane stays text.
    pub async fn resolve(
        &self,
        tenant: &Tenant,
        text: &str,
        asking: &Asking,
    ) -> Result<Resolved, CredentialError> {
        let found = placeholders_in(text);
        let (Some(execution), [found]) = (asking.execution, found.as_slice()) else {
            return Ok(Resolved::Text);
        };
        if found.range != (0..text.len()) {
            return Ok(Resolved::Text);
        }
        let verified = self.placeholders.verify(tenant, execution, found).await;
        let Some((alias, field)) = verified.map_err(CredentialError::Store)? else {
            return Ok(Resolved::Text);
        };
        let data = match self.reveal(tenant, &alias, asking).await {
            Ok((_, data)) => data,
            Err(CredentialError::NotFound(_)) => return Ok(Resolved::Named { alias, field }),
            Err(error) => return Err(error),
        };
        let value = match &data {
            Value::Object(data) => at(data, &field).cloned(),
            other => (field == "value").then(|| other.clone()),
        };
        Ok(match value {
            Some(value) => Resolved::Value { alias, field, value },
            None => Resolved::Named { alias, field },
        })
    }

    /// Returns the placeholders of a credential's fields in an execution, by field, for a worker
    /// that replaces them itself.
    pub fn placeholders_for(
        &self,
        tenant: &Tenant,
        execution: ExecutionId,
        (alias, kind): (&str, &str),
        data: &Value,
    ) -> BTreeMap<String, String> {
        let Some(minter) = self.placeholders.minter(tenant, execution) else {
            return BTreeMap::new();
        };
        let fields = secret_names(Some(kind), data).into_iter();
        fields.filter_map(|field| Some((field.clone(), minter.mint(alias, &field)?))).collect()
    }
}
