//! What a tool may ask of the worker that runs it: stored results and stored credentials.

use std::fmt;

use async_trait::async_trait;
use noetl_model::{Failure, Map, Value};

/// Results that are kept outside the log, by reference.
#[async_trait]
pub trait Artifacts: Send + Sync {
    /// The value a reference stands for.
    async fn get(&self, reference: &str) -> Result<Value, Failure>;

    /// Keeps a value and answers with the reference object that stands for it from then on.
    async fn put(&self, value: Value) -> Result<Value, Failure>;
}

impl fmt::Debug for dyn Artifacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Artifacts")
    }
}

/// Credentials by the alias playbooks name them by.
#[async_trait]
pub trait CredentialSource: Send + Sync {
    /// The credential of this alias; a failure that names the alias when there is none.
    async fn get(&self, alias: &str) -> Result<Credential, Failure>;
}

impl fmt::Debug for dyn CredentialSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CredentialSource")
    }
}

/// A credential with its secrets.
#[derive(Clone, PartialEq)]
pub struct Credential {
    /// The alias it is stored under.
    pub name: String,
    /// Its type, such as `postgres` or `bearer`.
    pub kind: String,
    pub data: Map,
}

/// Shows which fields there are, never what is in them.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields: Vec<_> = self.data.keys().collect();
        f.debug_struct("Credential")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("fields", &fields)
            .finish()
    }
}
