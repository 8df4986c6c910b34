//! Tool `postgres`: runs SQL on a Postgres server.
//!
//! Statements use the extended protocol one after the other, so the server reports which of them
//! return rows and of which types. Parameters are sent as values and are never part of the text.
//! Several statements run in one transaction. On timeout, on cancellation, and when the call is
//! dropped, the running statement is cancelled on the server. Connections are cached for a while
//! after a call, after a reset of the session state.

mod decode;
mod dedicated;
mod encode;
mod execute;
mod failure;
mod pool;
mod sessions;
mod settings;
pub(crate) mod temporal;
mod tls;

use std::sync::Arc;

use async_trait::async_trait;
use noetl_model::{Failure, Value};

use crate::config::expiry;
use crate::sql::{Dialect, Script, StatementResults};
use crate::{Options, Tool, ToolCall};

pub(crate) use decode::decode_row;
pub use dedicated::{NotifyHandling, connect_postgres};
pub(crate) use encode::{CellParam, Param, copy_field};
pub(crate) use execute::bound;
pub(crate) use pool::{Pool, Session, Stopper};
pub use sessions::{GatewaySession, GatewaySessions};
pub(crate) use settings::PostgresSettings;

#[derive(Debug, Clone)]
pub struct Postgres {
    options: Arc<Options>,
    pool: Pool,
}

impl Postgres {
    /// Creates a Postgres tool. It connects when a step needs it.
    pub fn new(options: Arc<Options>) -> Self {
        Self { options, pool: Pool::default() }
    }

    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }
}

#[async_trait]
impl Tool for Postgres {
    fn kind(&self) -> &'static str {
        "postgres"
    }

    async fn run(&self, call: ToolCall) -> Result<Value, Failure> {
        let limit = call.time_limit()?;
        let settings = PostgresSettings::read(&call.config)?;
        let script = Script::read(&call, "postgres", Dialect::Postgres)?;
        let stopper = Stopper::default();
        let mut answer = StatementResults::new(&self.options.limits);
        let mut work =
            Box::pin(execute::run(&self.pool, &settings, &script, &stopper, &mut answer));
        let failure = tokio::select! {
            done = &mut work => {
                drop(work);
                return done.map(|()| answer.into_value());
            }
            () = call.cancel.cancelled() => call.cancelled(),
            () = expiry(limit) => call.timed_out(limit.unwrap_or_default()),
        };
        stopper.stop(work).await;
        Err(failure)
    }
}
