//! Runs Python code in processes forked from one warm interpreter.
//!
//! The first step starts the template; every step is a fork of it, so it pays milliseconds rather
//! than an interpreter's start, and sees nothing of the steps before it. A step has its own
//! session, directory, standard streams and limits; it is killed with all its descendants on
//! timeout, on cancel and when the worker dies. A template that is lost fails the steps it was
//! running, as worth another try, and the next step starts a new one. This is isolation between
//! steps that mean well, not a sandbox: all run as the worker's user. Where more is asked for
//! ([`crate::Isolation`]), each step has an interpreter of its own, which is isolated as a whole.

mod answer;
mod script;
mod settings;
mod task;
mod template;

use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::{Failure, Value};
use tokio::sync::Mutex;

use crate::{Call, Http, Options, Tool};

use settings::Settings;
use template::Template;

/// The `python` tool.
pub struct Python {
    options: Arc<Options>,
    /// For programs that lie at an address.
    http: Http,
    /// The template new steps are forked from. Held while one starts, so that only one does.
    template: Mutex<Option<Arc<Template>>>,
}

impl Python {
    /// A Python tool with these settings; nothing starts before the first call.
    pub fn new(options: Arc<Options>) -> Self {
        let http = Http::new(Arc::clone(&options));
        Self { options, http, template: Mutex::default() }
    }

    async fn template(&self) -> Result<Arc<Template>, Failure> {
        if !self.options.isolation.is_off() {
            return Template::start(&self.options).await.map(Arc::new);
        }
        let mut slot = self.template.lock().await;
        match &*slot {
            Some(template) if !template.is_lost() => Ok(Arc::clone(template)),
            _ => {
                *slot = None;
                let template = Arc::new(Template::start(&self.options).await?);
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
        let code = script::code(&call, &self.http, self.options.limits.python_script).await?;
        let settings = Settings::read(&call, &code)?;
        // The time limit counts from the fork: the interpreter's start is not the step's doing.
        let template = tokio::select! {
            template = self.template() => template?,
            () = call.cancel.cancelled() => return Err(call.cancelled()),
        };
        task::run(template, &call, &settings, limit, &self.options).await
    }
}
