//! Serves a control plane over HTTP until a stop request. Shared by `noetl dev` and `noetl server`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use noetl_config::Settings;
use noetl_config::tree::Server;
use noetl_server::Auth;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::bus::BusSetup;
use crate::data_directory;
use crate::dev_token;
use crate::error::{CliError, ErrorKind};
use crate::http_options::{self, AuthMode};
use crate::keys;
use crate::output::{self, style};
use crate::policy;
use crate::runtime::{LocalRuntime, Setup};
use crate::settings;
use crate::signals::StopRequests;
use crate::stores::StoreLocation;
use crate::subscriptions;

/// Time for running steps to finish after a stop request. Unfinished steps resume at the next
/// start.
const GRACE: Duration = Duration::from_secs(5);

/// Time for requests in flight to finish after a stop request. A response takes milliseconds; this
/// is for clients that are slow to send their request.
const REQUEST_GRACE: Duration = Duration::from_secs(2);

/// Warning about open mode in the greeting.
const OPEN: &str =
    "  auth      open: every user and every program of this machine may do everything";

/// Settings of the server process.
pub(super) struct Serve {
    /// Settings, with the flags of the verb.
    pub(super) settings: Settings,
    /// Authentication of callers of the HTTP API.
    pub(super) auth: AuthMode,
    pub(super) location: StoreLocation,
    /// Directory in which a key for credentials is created if no setting provides one. Without it,
    /// only the setting counts.
    pub(super) key_directory: Option<PathBuf>,
    /// Maximum number of steps that the local worker runs at a time; 0 for no local worker.
    pub(super) slots: usize,
    /// Whether this process runs subscriptions.
    pub(super) subscriptions: bool,
    /// Whether the local user gets a token, in a file and as a sign-in link.
    pub(super) signs_in: bool,
    /// Returns the last lines of the greeting, given the listen address.
    pub(super) hint: fn(SocketAddr) -> Option<String>,
}

impl Serve {
    /// Serves until a stop request.
    pub(super) fn main(self) -> Result<ExitCode, CliError> {
        start_logging();
        let runtime = tokio::runtime::Runtime::new();
        let runtime = runtime.map_err(|error| CliError::from_error(ErrorKind::Config, &error))?;
        runtime.block_on(self.serve())
    }

    async fn serve(self) -> Result<ExitCode, CliError> {
        let Server { host, port, .. } = settings::decode(&self.settings)?;
        let retention = policy::policy_if_any(&self.settings)?;
        let bus = BusSetup::configured(&self.settings)?;
        let (options, tls) = (http_options::options(self.auth)?, http_options::tls()?);
        let is_open = matches!(options.auth, Auth::Open);
        if is_open && !host.is_loopback() {
            let message = format!("{host} is not a loopback address");
            return Err(CliError::new(ErrorKind::Config, message).hint(
                "callers are not asked for a token, so only this machine may call: use 127.0.0.1 \
                 or ::1, or set NOETL_AUTH to token or oidc",
            ));
        }
        let address = SocketAddr::new(host, port);
        let listener = TcpListener::bind(address).await.map_err(|error| {
            CliError::new(ErrorKind::Config, format!("could not listen on {address}: {error}"))
                .hint("stop what listens there, or choose another with --port")
        })?;
        let address = listener.local_addr().unwrap_or(address);
        let token_file = self.key_directory.as_deref().map(|data| dev_token::file(address, data));
        let encryption_key = match &self.key_directory {
            Some(directory) => {
                data_directory::prepare(directory)?;
                Some(keys::of_directory(directory)?)
            }
            None => keys::from_settings()?,
        };
        let name = self.location.name();
        let (location, slots) = (self.location, self.slots);
        let (resume, grace) = (true, GRACE);
        let scheme = if tls.is_some() { "https" } else { "http" };
        // A wildcard address can't be connected to; `localhost` works at least on this machine.
        let host = match address.ip() {
            ip if ip.is_unspecified() => format!("localhost:{}", address.port()),
            _ => address.to_string(),
        };
        let reached_at = format!("{scheme}://{host}");
        // The directory of the token also contains tokens of this user's other servers.
        let tokens = token_file.as_deref().and_then(Path::parent).map(Path::to_owned);
        let own = self.key_directory.into_iter().chain(tokens).collect();
        let setup = Setup {
            location,
            slots,
            resume,
            grace,
            encryption_key,
            retention,
            bus,
            reached_at: reached_at.clone(),
            own,
        };
        let stop = StopRequests::listen();
        let mut stop = stop.map_err(|error| CliError::from_error(ErrorKind::Config, &error))?;
        let runtime = LocalRuntime::open(setup).await?;
        let subscriptions = match self.subscriptions {
            true => {
                let options = subscriptions::options(&runtime.control)?;
                Some(subscriptions::act_on_all(&runtime.control, options)?)
            }
            false => None,
        };
        let is_signed_in = self.signs_in && self.auth == AuthMode::Token;
        let token_file = token_file.filter(|_| is_signed_in);
        if let Some(file) = &token_file {
            dev_token::ensure(&runtime.control, file, address).await?;
        }
        greet(&name, slots, &format!("{scheme}://{address}"), runtime.control.journal.resumed);
        let app = noetl_server::App::new(runtime.control.clone(), options);
        let app = app.with_bus(runtime.bus.clone());
        match (is_open, token_file) {
            (true, _) => output::note(OPEN),
            (false, None) => show_first_token(&runtime).await?,
            (false, Some(file)) => {
                let minutes = noetl_server::CODE_LASTS.as_secs() / 60;
                let code = app.sign_in_code();
                output::note(&format!("  token     {}", file.display()));
                output::note(&format!("  web UI    {reached_at}/sign-in#code={code}"));
                output::note(&format!(
                    "            the link signs one browser in, within {minutes} minutes; \
                     `noetl token link` makes another"
                ));
            }
        }
        if let Some(hint) = (self.hint)(address) {
            output::note(&hint);
        }
        let (stopping, stopped) = oneshot::channel();
        let told_to_stop = async move {
            stop.next().await;
            output::note(
                "stopping: waiting for running steps; the rest continues at the next start",
            );
            let _ = stopping.send(stop);
        };
        let served = tokio::select! {
            served = noetl_server::serve(listener, app, tls, told_to_stop) => served,
            () = patience_ends(stopped) => Ok(()),
        };
        if let Some(subscriptions) = subscriptions {
            subscriptions.close().await;
        }
        runtime.close().await;
        served.map_err(|error| CliError::from_error(ErrorKind::Config, &error))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Starts logging to stderr, at level `warn` unless `RUST_LOG` is set.
pub(super) fn start_logging() {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    // If stderr is closed, reporting the failed write on stderr would panic and end the process.
    tracing_subscriber::fmt()
        .with_ansi(style::of_stderr().is_coloured())
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .log_internal_errors(false)
        .init();
}

/// Creates an admin token if no token exists, and prints it once.
async fn show_first_token(runtime: &LocalRuntime) -> Result<(), CliError> {
    let made = runtime.control.secrets.administration().create_first_token().await;
    if let Some(token) = made.map_err(|error| CliError::from_error(ErrorKind::Config, &error))? {
        output::note("  admin     this token is shown once; keep it, or make others with it:");
        output::note(&format!("            {token}"));
    }
    Ok(())
}

fn greet(database: &str, slots: usize, address: &str, resumed: usize) {
    output::note(&format!("noetl listens on {address}"));
    output::note(&format!("  database  {database}"));
    match slots {
        0 => output::note("  workers   none in this process"),
        slots => output::note(&format!("  slots     {slots}")),
    }
    for file in settings::current().files() {
        let file = file.display().to_string();
        output::note(&format!("  config    {}", style::one_line(&file)));
    }
    if resumed > 0 {
        let commands = if resumed == 1 { "command" } else { "commands" };
        output::note(&format!("  resumed   {resumed} {commands} of unfinished executions"));
    }
    output::note("  stop      Ctrl-C");
}

/// Waits until requests in flight have had [`REQUEST_GRACE`] after a stop request, or until the
/// next stop request. This bounds the shutdown if a client never finishes its request.
async fn patience_ends(stopped: oneshot::Receiver<StopRequests>) {
    match stopped.await {
        Ok(mut stop) => {
            let _ = tokio::time::timeout(REQUEST_GRACE, stop.next()).await;
        }
        // The server ended on its own and reports the error.
        Err(_) => std::future::pending().await,
    }
}
