//! Resolves placeholders for fields of credentials.

use std::collections::BTreeMap;

use noetl_model::placeholder::placeholders_in;
use noetl_model::{ExecutionId, Tenant, Value};

use super::{CredentialError, Credentials};
use crate::audit::SecretRequest;
use crate::redaction::reveal::value_at;
use crate::redaction::secret_names;

/// Outcome of resolving a placeholder.
#[derive(Debug, Clone, PartialEq)]
pub enum Resolved {
    /// The placeholder is valid in the execution, and the credential has the field.
    Value {
        /// Name of the credential.
        alias: String,
        /// Field of the credential.
        field: String,
        /// Value of the field.
        value: Value,
    },
    /// The placeholder is valid in the execution, but its value is not stored: it stands for a
    /// token, or for a credential or field that was removed.
    Named {
        /// Name of the secret.
        alias: String,
        /// Field of the secret.
        field: String,
    },
    /// The text is no placeholder, or its MAC is not valid in the execution.
    Text,
}

impl Credentials {
    /// Verifies a placeholder in the execution of `asking`, and returns its value. `text` has to be
    /// one whole placeholder; anything else is [`Resolved::Text`].
    pub async fn resolve(
        &self,
        tenant: &Tenant,
        text: &str,
        asking: &SecretRequest,
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
            Value::Object(data) => value_at(data, &field).cloned(),
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
