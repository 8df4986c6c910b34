//! `noetl dev`: the control plane with a worker, on an embedded database.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::arguments::DevArguments;
use crate::database::Database;
use crate::failure::{Failure, Kind};
use crate::output::{self, style};
use crate::runtime::{Runtime, Setup};
use crate::signals::StopRequests;
use crate::stores::Place;

/// How long running steps may take to end after Ctrl-C; what is left goes on at the next start.
const GRACE: Duration = Duration::from_secs(5);

/// How long requests under way may take to be answered after Ctrl-C. An answer takes milliseconds;
/// this is for a client that is slow to send its question.
const REQUEST_GRACE: Duration = Duration::from_secs(2);

pub(crate) fn main(arguments: DevArguments) -> Result<ExitCode, Failure> {
    start_logging();
    if !arguments.host.is_loopback() {
        let message = format!("{} is not a loopback address", arguments.host);
        return Err(Failure::new(Kind::Config, message)
            .hint("there are no users yet, so only this machine may call: use 127.0.0.1 or ::1"));
    }
    let runtime = tokio::runtime::Runtime::new();
    let runtime = runtime.map_err(|error| Failure::from_error(Kind::Config, &error))?;
    runtime.block_on(serve(arguments))
}

/// Warnings and worse, unless `RUST_LOG` says otherwise.
fn start_logging() {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    // A log that nobody reads any more is no reason to end, which its own complaint would be.
    tracing_subscriber::fmt()
        .with_ansi(style::of_stderr().is_coloured())
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .log_internal_errors(false)
        .init();
}

async fn serve(arguments: DevArguments) -> Result<ExitCode, Failure> {
    let retention = arguments.policy.policy_if_any()?;
    let bus = arguments.bus.setup()?;
    let address = SocketAddr::new(arguments.host, arguments.port);
    let listener = TcpListener::bind(address).await.map_err(|error| {
        Failure::new(Kind::Config, format!("could not listen on {address}: {error}"))
            .hint("stop what listens there, or choose another with --port")
    })?;
    let address = listener.local_addr().unwrap_or(address);
    let url = arguments.database_url.as_deref();
    let place = Place::chosen(url, Database::in_directory(&arguments.data))?;
    let name = place.name();
    let slots = arguments.slots;
    let setup = Setup { place, slots, resume: true, grace: GRACE, retention, bus };
    let stop = StopRequests::listen();
    let mut stop = stop.map_err(|error| Failure::from_error(Kind::Config, &error))?;
    let runtime = Runtime::open(setup).await?;
    greet(&arguments, &name, address, runtime.control.resumed);
    let app = noetl_server::App::new(runtime.control.clone(), noetl_server::Options::default());
    let app = app.with_bus(runtime.bus.clone());
    let (stopping, stopped) = oneshot::channel();
    let told_to_stop = async move {
        stop.next().await;
        output::note("stopping: running steps may end, the rest goes on at the next start");
        let _ = stopping.send(stop);
    };
    let served = tokio::select! {
        served = noetl_server::serve(listener, app, told_to_stop) => served,
        () = patience_ends(stopped) => Ok(()),
    };
    runtime.close().await;
    served.map_err(|error| Failure::from_error(Kind::Config, &error))?;
    Ok(ExitCode::SUCCESS)
}

fn greet(arguments: &DevArguments, database: &str, address: SocketAddr, resumed: usize) {
    output::note(&format!("noetl listens on http://{address}"));
    output::note(&format!("  database  {database}"));
    output::note(&format!("  slots     {}", arguments.slots));
    if resumed > 0 {
        let commands = if resumed == 1 { "command" } else { "commands" };
        output::note(&format!("  resumed   {resumed} {commands} of unfinished executions"));
    }
    output::note("  stop      Ctrl-C");
    output::note(&what_to_try(address));
}

/// Commands for a second terminal. A document may be sent in base64, which needs no quoting.
fn what_to_try(address: SocketAddr) -> String {
    let api = format!("http://{address}/api");
    let json = "-H 'content-type: application/json'";
    format!(
        r#"try in a second terminal:
  curl {api}/health
  printf '{{"content": "%s"}}' "$(base64 < examples/hello.yaml | tr -d '\n')" |
    curl {api}/catalog/register {json} -d @-
  curl {api}/execute {json} \
    -d '{{"path": "examples/hello", "payload": {{"who": "Ada"}}}}'
  curl {api}/executions/<execution_id>"#
    )
}

/// Resolves when requests under way have had their time after a request to stop, or at the next
/// such request: a client that never finishes its own must not keep the process.
async fn patience_ends(stopped: oneshot::Receiver<StopRequests>) {
    match stopped.await {
        Ok(mut stop) => {
            let _ = tokio::time::timeout(REQUEST_GRACE, stop.next()).await;
        }
        // The server ended by itself, and says why.
        Err(_) => std::future::pending().await,
    }
}
