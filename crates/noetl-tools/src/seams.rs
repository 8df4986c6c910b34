//! Services of the worker that tools use: stored results and credentials.

use std::fmt;

use async_trait::async_trait;
use noetl_model::{Failure, Map, Value};

/// Results stored outside the event log, by reference.
#[async_trait]
pub trait Artifacts: Send + Sync {
    /// Returns the value of a reference.
    async fn get(&self, reference: &str) -> Result<Value, Failure>;

    /// Stores a value and returns its reference object.
    async fn put(&self, value: Value) -> Result<Value, Failure>;
}

impl fmt::Debug for dyn Artifacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Artifacts")
    }
}

/// Credentials, by the alias that playbooks use.
#[async_trait]
pub trait CredentialSource: Send + Sync {
    /// Returns the credential with this alias, or a failure that names the alias if there is none.
    async fn get(&self, alias: &str) -> Result<ToolCredential, Failure>;
}

impl fmt::Debug for dyn CredentialSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CredentialSource")
    }
}

/// A credential with its secrets.
#[derive(Clone, PartialEq)]
pub struct ToolCredential {
    /// Alias under which the credential is stored.
    pub name: String,
    /// Type, such as `postgres` or `bearer`.
    pub kind: String,
    pub data: Map,
}

/// Shows the names of the fields, never their values.
impl fmt::Debug for ToolCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields: Vec<_> = self.data.keys().collect();
        f.debug_struct("Credential")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("fields", &fields)
            .finish()
    }
}
