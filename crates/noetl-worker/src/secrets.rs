//! The secrets of one command: those it used, and placeholders resolved for its tools.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use noetl_model::placeholder::remove_tags_in;
use noetl_model::{Failure, FailureKind, Map, Value};
use noetl_playbook::assignment::SetScope;
use noetl_playbook::pipeline::EvaluatedAssignment;
use noetl_tools::{CredentialSource, ToolCall, ToolCredential};
use noetl_work::reveal::{collect_map, replace_in, value_at};
use noetl_work::{ResolvedPlaceholder, SecretTable};

use crate::executor::CommandExecutor;
use crate::services::Services;
use crate::task::CommandTask;
use crate::tokens::TokenCache;

/// The secrets of a command. Cheap to clone; clones share the same set.
#[derive(Clone)]
pub(crate) struct CommandSecrets {
    source: Option<Arc<dyn CredentialSource>>,
    used: Arc<Mutex<SecretTable>>,
    tokens: Arc<TokenCache>,
    services: Arc<dyn Services>,
    command: CommandTask,
}

impl CommandSecrets {
    pub(crate) fn new(performer: &CommandExecutor, command: &CommandTask) -> Self {
        let used: Arc<Mutex<SecretTable>> = Arc::default();
        let source = performer.services.credentials(command);
        let source = source.map(|source| {
            let noting: Arc<dyn CredentialSource> = Arc::new(Noting { source, used: used.clone() });
            noting
        });
        let (tokens, services) = (performer.tokens.clone(), performer.services.clone());
        Self { source, used, tokens, services, command: command.clone() }
    }

    /// Returns the source of credentials for tools. Credentials read from it are registered as
    /// used.
    pub(crate) fn source(&self) -> Option<Arc<dyn CredentialSource>> {
        self.source.clone()
    }

    /// Registers a secret that the command used and must not write to variables.
    pub(crate) fn note(&self, alias: &str, data: &Value) {
        lock(&self.used).note(alias, None, data);
    }

    /// Returns a failure if a value contains a secret and must not be written, because the event
    /// log records variables.
    pub(crate) fn forbids(&self, written: &EvaluatedAssignment) -> Option<Failure> {
        let scope = match written.scope {
            SetScope::Ctx => "ctx",
            SetScope::Step => "step",
            // Iteration variables are discarded with the tasks and not recorded.
            SetScope::Iter => return None,
        };
        let used = lock(&self.used);
        let secret = used.find(&written.value)?;
        let key = format!("{scope}.{}", written.path.join("."));
        let message = format!(
            "{key} would hold the secret {secret}, and variables are recorded; name the secret \
             where it is used instead, with 'auth' or 'keychain'"
        );
        Some(Failure::new(FailureKind::Config, message).with_detail("key", key))
    }

    /// Replaces the placeholders in a call's settings and arguments by the values they stand for in
    /// this execution. All others stay text, without their tag.
    pub(crate) async fn reveal(&self, call: &mut ToolCall) -> Result<(), Failure> {
        remove_tags_in(&mut call.context);
        let mut texts = Vec::new();
        for map in [&call.config, &call.input] {
            collect_map(map, &mut texts);
        }
        if texts.is_empty() {
            return Ok(());
        }
        let mut known: HashMap<String, Value> = HashMap::new();
        for text in texts {
            if !known.contains_key(&text)
                && let Some(value) = self.meaning(&text).await?
            {
                known.insert(text, value);
            }
        }
        for map in [&mut call.config, &mut call.input] {
            replace_in(map, &known);
        }
        Ok(())
    }

    /// Returns the value of a placeholder, or `None` if it doesn't resolve. The value of a keychain
    /// token comes from this worker's cache, because the control plane doesn't store tokens.
    async fn meaning(&self, text: &str) -> Result<Option<Value>, Failure> {
        let (alias, field, value) = match self.services.resolve(&self.command, text).await? {
            ResolvedPlaceholder::Text => return Ok(None),
            ResolvedPlaceholder::Value { alias, field, value } => (alias, field, Some(value)),
            ResolvedPlaceholder::Named { alias, field } => {
                let token = self.tokens.used(self.command.execution, &alias);
                let value = token.and_then(|token| value_at(&token, &field).cloned());
                (alias, field, value)
            }
        };
        if let Some(value) = &value {
            let data = Value::Object(Map::from_iter([(field, value.clone())]));
            self.note(&alias, &data);
        }
        Ok(value)
    }
}

fn lock(used: &Mutex<SecretTable>) -> MutexGuard<'_, SecretTable> {
    used.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers every credential that is read through it as used.
struct Noting {
    source: Arc<dyn CredentialSource>,
    used: Arc<Mutex<SecretTable>>,
}

#[async_trait]
impl CredentialSource for Noting {
    async fn get(&self, alias: &str) -> Result<ToolCredential, Failure> {
        let credential = self.source.get(alias).await?;
        let data = Value::Object(credential.data.clone());
        lock(&self.used).note(&credential.name, Some(&credential.kind), &data);
        Ok(credential)
    }
}
