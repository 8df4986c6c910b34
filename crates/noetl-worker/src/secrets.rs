//! The secrets of one command: which it used, and marks turned back for its tools.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use noetl_control::reveal::{at, collect, replace};
use noetl_control::{Mark, Secrets};
use noetl_model::{ExecutionId, Failure, FailureKind, Map, Value};
use noetl_playbook::document::SetScope;
use noetl_playbook::pipeline::Written;
use noetl_tools::{Call, Credential, CredentialSource};

use crate::perform::{Command, Performer};
use crate::tokens::Tokens;

/// The secrets of a command. Cheap to clone; clones share what they know.
#[derive(Clone)]
pub(crate) struct CommandSecrets {
    source: Option<Arc<dyn CredentialSource>>,
    used: Arc<Mutex<Secrets>>,
    tokens: Arc<Tokens>,
    execution: ExecutionId,
}

impl CommandSecrets {
    pub(crate) fn new(performer: &Performer, command: &Command) -> Self {
        let used: Arc<Mutex<Secrets>> = Arc::default();
        let source = performer.services.credentials(command);
        let source = source.map(|source| {
            let noting: Arc<dyn CredentialSource> = Arc::new(Noting { source, used: used.clone() });
            noting
        });
        Self { source, used, tokens: performer.tokens.clone(), execution: command.execution }
    }

    /// Where tools get credentials; what they get is noted.
    pub(crate) fn source(&self) -> Option<Arc<dyn CredentialSource>> {
        self.source.clone()
    }

    /// Notes something the command used that is not to be kept in variables.
    pub(crate) fn note(&self, alias: &str, data: &Value) {
        lock(&self.used).note(alias, data);
    }

    /// Why a value may not be written, if it may not: variables are part of the log.
    pub(crate) fn forbids(&self, written: &Written) -> Option<Failure> {
        let scope = match written.scope {
            SetScope::Ctx => "ctx",
            SetScope::Step => "step",
            // It ends with the tasks.
            SetScope::Iter => return None,
        };
        let used = lock(&self.used);
        let mark = used.find(&written.value)?;
        let key = format!("{scope}.{}", written.path.join("."));
        let message = format!(
            "{key} would hold the secret {mark}, and variables are recorded; name the secret \
             where it is used instead, with 'auth' or 'keychain'"
        );
        Some(Failure::new(FailureKind::Config, message).with_detail("key", key))
    }

    /// Turns the marks in a call's settings and arguments back into what they stand for. One whose
    /// credential is gone stays.
    pub(crate) async fn reveal(&self, call: &mut Call) -> Result<(), Failure> {
        let mut marks = Vec::new();
        for map in [&call.config, &call.input] {
            map.values().for_each(|value| collect(value, &mut marks));
        }
        if marks.is_empty() {
            return Ok(());
        }
        let mut known: HashMap<String, Value> = HashMap::new();
        for mark in marks {
            if !known.contains_key(&mark.name)
                && let Some(value) = self.meaning(&mark).await?
            {
                known.insert(mark.name, value);
            }
        }
        for map in [&mut call.config, &mut call.input] {
            map.values_mut().for_each(|value| replace(value, &known));
        }
        Ok(())
    }
}

impl CommandSecrets {
    /// What a mark stands for; `None` when there is no such credential, no such field in it, or no
    /// such token that this execution used and this process knows.
    async fn meaning(&self, mark: &Mark) -> Result<Option<Value>, Failure> {
        for (alias, field) in mark.readings() {
            if let Some(token) = self.tokens.used(self.execution, alias)
                && let Some(value) = at(&token, field).cloned()
            {
                self.note(
                    alias,
                    &Value::Object(Map::from_iter([(field.to_owned(), value.clone())])),
                );
                return Ok(Some(value));
            }
            let Some(source) = &self.source else { continue };
            match source.get(alias).await {
                Ok(credential) => {
                    if let Some(value) = at(&credential.data, field) {
                        return Ok(Some(value.clone()));
                    }
                }
                Err(failure) if failure.kind == FailureKind::Auth => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(None)
    }
}

fn lock(used: &Mutex<Secrets>) -> MutexGuard<'_, Secrets> {
    used.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes what passes through it.
struct Noting {
    source: Arc<dyn CredentialSource>,
    used: Arc<Mutex<Secrets>>,
}

#[async_trait]
impl CredentialSource for Noting {
    async fn get(&self, alias: &str) -> Result<Credential, Failure> {
        let credential = self.source.get(alias).await?;
        let data = Value::Object(credential.data.clone());
        lock(&self.used).note(&credential.name, &data);
        Ok(credential)
    }
}
