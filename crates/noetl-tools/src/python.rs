//! Runs Python code in processes forked from one warm interpreter.
//!
//! The first step starts the template; every step is a fork of it, so it pays milliseconds rather
//! than an interpreter's start, and sees nothing of the steps before it. A step has its own
//! session, directory, standard streams and limits; it is killed with all its descendants on
//! timeout, on cancel and when the worker dies. A template that is lost fails the steps it was
//! running, as worth another try, and the next step starts a new one. From isolation level 1 on, an
//! interpreter is warm within a sandbox of one tenant and runs one step at a time; what a step leaves
//! running is ended before the next one begins.

mod answer;
mod script;
mod settings;
mod task;
mod template;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use noetl_model::{Failure, Value};
use tokio::sync::Mutex;

use crate::sandbox::{Host, Pool, Sandbox};
use crate::{Call, Http, Options, Tool};

pub(crate) use script::read_file;

use settings::Settings;
use template::Template;

/// A sandbox with the interpreter that is warm in it. Dropping it ends both.
struct Warm {
    // Before the host: what it runs is lost without it.
    template: Arc<Template>,
    host: Host,
}

/// The `python` tool.
pub struct Python {
    sandbox: Arc<Sandbox>,
    /// Sandboxes with a warm interpreter that no step runs in.
    idle: Pool<Warm>,
    /// For programs that lie at an address.
    http: Http,
    /// The template new steps are forked from. Held while one starts, so that only one does.
    template: Mutex<Option<Arc<Template>>>,
}

impl Python {
    /// A Python tool with these settings; nothing starts before the first call.
    pub fn new(options: Arc<Options>) -> Self {
        Self::within(Arc::new(Sandbox::new(options)))
    }

    pub(crate) fn within(sandbox: Arc<Sandbox>) -> Self {
        let http = Http::new(Arc::clone(sandbox.options()));
        Self { sandbox, idle: Pool::default(), http, template: Mutex::default() }
    }

    /// Returns a sandbox of the call's tenant with a warm interpreter.
    async fn warm(&self, call: &Call) -> Result<Warm, Failure> {
        let is_usable =
            |warm: &Warm| !warm.template.is_lost() && warm.host.is_current(self.sandbox.options());
        if let Some(warm) = self.idle.take(&call.tenant, is_usable) {
            return Ok(warm);
        }
        let mut host = self.sandbox.start(&call.tenant).await?;
        let template = Template::start_in(&mut host, self.sandbox.options()).await?;
        Ok(Warm { host, template: Arc::new(template) })
    }

    /// Runs a step in a sandbox, which is kept if the step left nothing in it.
    async fn run_warm(
        &self,
        call: &Call,
        settings: &Settings<'_>,
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

    async fn template(&self) -> Result<Arc<Template>, Failure> {
        let mut slot = self.template.lock().await;
        match &*slot {
            Some(template) if !template.is_lost() => Ok(Arc::clone(template)),
            _ => {
                *slot = None;
                let template = Arc::new(Template::start(self.sandbox.options()).await?);
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

    async fn run(&self, call: Call) -> Result<Value, Failure> {
        let limit = call.time_limit()?;
        let code = script::code(&call, &self.http, &self.sandbox).await?;
        let settings = Settings::read(&call, &code)?;
        if self.sandbox.is_on() {
            return self.run_warm(&call, &settings, limit).await;
        }
        self.sandbox.admit(&call.tenant)?;
        // The time limit counts from the fork: the interpreter's start is not the step's doing.
        let template = tokio::select! {
            template = self.template() => template?,
            () = call.cancel.cancelled() => return Err(call.cancelled()),
        };
        let dir = template.step_dir()?;
        task::run(template, dir, &call, &settings, limit, self.sandbox.options()).await
    }
}
