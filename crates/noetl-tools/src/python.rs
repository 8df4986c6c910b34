//! Tool `python`: runs Python code in processes forked from a warm interpreter.
//!
//! The first step starts the template process. Every step is a fork of it, so it takes milliseconds
//! instead of an interpreter start, and shares no state with earlier steps. A step has its own
//! session, directory, standard streams, and limits. It is killed with all its descendants on
//! timeout, on cancellation, and when the worker dies. If the template process is lost, its running
//! steps fail as retryable, and the next step starts a new template. From isolation level 1 on, an
//! interpreter runs in a sandbox of one tenant, one step at a time; processes that a step leaves
//! behind are ended before the next step starts.

mod answer;
mod script;
mod settings;
mod task;
mod zygote;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{Failure, Value};
use tokio::sync::Mutex;

use crate::sandbox::{Host, Pool, Sandbox};
use crate::{Http, Options, Tool, ToolCall};

pub(crate) use script::read_file;

use settings::PythonSettings;
use zygote::Zygote;

/// A sandbox with a warm interpreter. Dropping it ends both.
struct WarmSandbox {
    // Dropped before the host, because the host runs the interpreter.
    template: Arc<Zygote>,
    host: Host,
}

pub struct Python {
    sandbox: Arc<Sandbox>,
    /// Idle sandboxes with a warm interpreter.
    idle: Pool<WarmSandbox>,
    /// Loads programs from a URL.
    http: Http,
    /// Template process of new steps. Locked while a template starts, so that only one does.
    template: Mutex<Option<Arc<Zygote>>>,
}

impl Python {
    /// Creates a Python tool. Nothing is started before the first call.
    pub fn new(options: Arc<Options>) -> Self {
        Self::with_sandbox(Arc::new(Sandbox::new(options)))
    }

    pub(crate) fn with_sandbox(sandbox: Arc<Sandbox>) -> Self {
        let http = Http::new(Arc::clone(sandbox.options()));
        Self { sandbox, idle: Pool::default(), http, template: Mutex::default() }
    }

    /// Returns a sandbox of the call's tenant with a warm interpreter.
    async fn warm(&self, call: &ToolCall) -> Result<WarmSandbox, Failure> {
        let is_usable = |warm: &WarmSandbox| {
            !warm.template.is_lost() && warm.host.is_current(self.sandbox.options())
        };
        if let Some(warm) = self.idle.take(&call.tenant, is_usable) {
            return Ok(warm);
        }
        let mut host = self.sandbox.start(&call.tenant).await?;
        let template = Zygote::start_in(&mut host, self.sandbox.options()).await?;
        Ok(WarmSandbox { host, template: Arc::new(template) })
    }

    /// Runs a step in a sandbox, which is reused if the step left nothing in it.
    async fn run_warm(
        &self,
        call: &ToolCall,
        settings: &PythonSettings<'_>,
        limit: Option<Duration>,
    ) -> Result<Value, Failure> {
        let mut warm = tokio::select! {
            warm = self.warm(call) => warm?,
            () = call.cancel.cancelled() => return Err(call.cancelled()),
        };
        let dir = warm.host.step_dir()?;
        let mut settings = settings.clone();
        let isolation = &self.sandbox.options().isolation;
        if isolation.moves_home() {
            let own = dir.path().display().to_string();
            for name in ["HOME", "TMPDIR"] {
                settings.env.entry(name).or_insert_with(|| own.clone().into());
            }
        }
        let template = Arc::clone(&warm.template);
        let outcome =
            task::run(template, dir, call, &settings, limit, self.sandbox.options()).await;
        let is_empty = !isolation.private_tmp || warm.host.wipe().await.is_ok();
        if !warm.template.is_lost() && is_empty {
            self.idle.put(&call.tenant, warm);
        }
        outcome
    }

    async fn template(&self) -> Result<Arc<Zygote>, Failure> {
        let mut slot = self.template.lock().await;
        match &*slot {
            Some(template) if !template.is_lost() => Ok(Arc::clone(template)),
            _ => {
                *slot = None;
                let template = Arc::new(Zygote::start(self.sandbox.options()).await?);
                *slot = Some(Arc::clone(&template));
                Ok(template)
            }
        }
    }
}

#[async_trait]
impl Tool for Python {
    fn kind(&self) -> &'static str {
        "python"
    }

    async fn run(&self, call: ToolCall) -> Result<Value, Failure> {
        let limit = call.time_limit()?;
        let code = script::code(&call, &self.http, &self.sandbox).await?;
        let settings = PythonSettings::read(&call, &code)?;
        if self.sandbox.is_on() {
            return self.run_warm(&call, &settings, limit).await;
        }
        self.sandbox.admit(&call.tenant)?;
        // The timeout starts at the fork, so that the interpreter's start doesn't count.
        let template = tokio::select! {
            template = self.template() => template?,
            () = call.cancel.cancelled() => return Err(call.cancelled()),
        };
        let dir = template.step_dir()?;
        task::run(template, dir, &call, &settings, limit, self.sandbox.options()).await
    }
}
