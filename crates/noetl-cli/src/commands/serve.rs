//! A control plane behind an HTTP listener until it is told to stop: what `dev` and `server` share.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use noetl_server::Auth;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::arguments::{AuthMode, BusArguments, PolicyArguments};
use crate::data_directory;
use crate::dev_token;
use crate::edge;
use crate::failure::{Failure, Kind};
use crate::keys;
use crate::output::{self, style};
use crate::runtime::{Runtime, Setup};
use crate::signals::StopRequests;
use crate::stores::Place;
use crate::subscriptions;

/// How long running steps may take to end after Ctrl-C; what is left goes on at the next start.
const GRACE: Duration = Duration::from_secs(5);

/// How long requests under way may take to be answered after Ctrl-C. An answer takes milliseconds;
/// this is for a client that is slow to send its question.
const REQUEST_GRACE: Duration = Duration::from_secs(2);

/// Consequence of open mode, for the greeting.
const OPEN: &str =
    "  auth      open: every user and every program of this machine may do everything";

/// What to serve.
pub(super) struct Serve {
    /// The address to listen on.
    pub(super) host: IpAddr,
    /// The port; 0 picks a free one.
    pub(super) port: u16,
    /// Authentication of callers of the HTTP API.
    pub(super) auth: AuthMode,
    /// Where everything is kept.
    pub(super) place: Place,
    /// Where a key for credentials is made when no setting names one; without it there is none.
    pub(super) key_directory: Option<PathBuf>,
    /// How many steps a worker in this process runs at a time.
    pub(super) slots: usize,
    /// How long what is kept.
    pub(super) policy: PolicyArguments,
    /// Where events are published.
    pub(super) bus: BusArguments,
    /// Whether subscriptions are acted on in this process.
    pub(super) subscriptions: bool,
    /// Whether the user of this machine gets a token, in a file and by a link.
    pub(super) signs_in: bool,
    /// What to say at the end of the greeting, given the address.
    pub(super) hint: fn(SocketAddr) -> Option<String>,
}

impl Serve {
    /// Serves until told to stop.
    pub(super) fn main(self) -> Result<ExitCode, Failure> {
        start_logging();
        let runtime = tokio::runtime::Runtime::new();
        let runtime = runtime.map_err(|error| Failure::from_error(Kind::Config, &error))?;
        runtime.block_on(self.serve())
    }

    async fn serve(self) -> Result<ExitCode, Failure> {
        let retention = self.policy.policy_if_any()?;
        let bus = self.bus.setup()?;
        let (options, tls) = (edge::options(self.auth)?, edge::tls()?);
        let is_open = matches!(options.auth, Auth::Open);
        if is_open && !self.host.is_loopback() {
            let message = format!("{} is not a loopback address", self.host);
            return Err(Failure::new(Kind::Config, message).hint(
                "callers are not asked for a token, so only this machine may call: use 127.0.0.1 \
                 or ::1, or set NOETL_AUTH to token or oidc",
            ));
        }
        let address = SocketAddr::new(self.host, self.port);
        let listener = TcpListener::bind(address).await.map_err(|error| {
            Failure::new(Kind::Config, format!("could not listen on {address}: {error}"))
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
        let name = self.place.name();
        let (place, slots) = (self.place, self.slots);
        let (resume, grace) = (true, GRACE);
        let scheme = if tls.is_some() { "https" } else { "http" };
        // One that listens everywhere is reached here at least.
        let host = match address.ip() {
            ip if ip.is_unspecified() => format!("localhost:{}", address.port()),
            _ => address.to_string(),
        };
        let reached_at = format!("{scheme}://{host}");
        // The directory of the token holds those of other servers of this user as well.
        let tokens = token_file.as_deref().and_then(Path::parent).map(Path::to_owned);
        let own = self.key_directory.into_iter().chain(tokens).collect();
        let setup = Setup {
            place,
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
        let mut stop = stop.map_err(|error| Failure::from_error(Kind::Config, &error))?;
        let runtime = Runtime::open(setup).await?;
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
        greet(&name, slots, &format!("{scheme}://{address}"), runtime.control.resumed);
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
            output::note("stopping: running steps may end, the rest goes on at the next start");
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
        served.map_err(|error| Failure::from_error(Kind::Config, &error))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Warnings and worse, unless `RUST_LOG` says otherwise.
pub(super) fn start_logging() {
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

/// Makes a token for an admin where nobody has one, and shows it, this once.
async fn show_first_token(runtime: &Runtime) -> Result<(), Failure> {
    let made = runtime.control.administration().create_first_token().await;
    if let Some(token) = made.map_err(|error| Failure::from_error(Kind::Config, &error))? {
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
    if resumed > 0 {
        let commands = if resumed == 1 { "command" } else { "commands" };
        output::note(&format!("  resumed   {resumed} {commands} of unfinished executions"));
    }
    output::note("  stop      Ctrl-C");
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
