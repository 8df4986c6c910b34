//! Resolves placeholders for fields of credentials.

use std::collections::BTreeMap;

use noetl_model::placeholder::placeholders_in;
use noetl_model::{ExecutionId, Tenant, Value};
use noetl_work::reveal::value_at;
use noetl_work::{ResolvedPlaceholder, secret_names};

use super::Credentials;
use crate::audit::SecretRequest;
use crate::credential_error::CredentialError;

impl Credentials {
    /// Verifies a placeholder in the execution of `asking`, and returns its value. `text` has to be
    /// one whole placeholder; anything else is [`ResolvedPlaceholder::Text`].
    pub async fn resolve(
        &self,
        tenant: &Tenant,
        text: &str,
        asking: &SecretRequest,
    ) -> Result<ResolvedPlaceholder, CredentialError> {
        let found = placeholders_in(text);
        let (Some(execution), [found]) = (asking.execution, found.as_slice()) else {
            return Ok(ResolvedPlaceholder::Text);
        };
        if found.range != (0..text.len()) {
            return Ok(ResolvedPlaceholder::Text);
        }
        let verified = self.placeholders.verify(tenant, execution, found).await;
        let Some((alias, field)) = verified.map_err(CredentialError::Store)? else {
            return Ok(ResolvedPlaceholder::Text);
        };
        let data = match self.reveal(tenant, &alias, asking).await {
            Ok((_, data)) => data,
            Err(CredentialError::NotFound(_)) => {
                return Ok(ResolvedPlaceholder::Named { alias, field });
            }
            Err(error) => return Err(error),
        };
        let value = match &data {
            Value::Object(data) => value_at(data, &field).cloned(),
            other => (field == "value").then(|| other.clone()),
        };
        Ok(match value {
            Some(value) => ResolvedPlaceholder::Value { alias, field, value },
            None => ResolvedPlaceholder::Named { alias, field },
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
