//! `noetl worker`: runs steps for a server in a separate process.

mod health;
mod mode;
mod secrecy;

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use noetl_bus_nats::{Address, NatsStream};
use noetl_model::Map;
use noetl_sources::MessageCounters;
use noetl_store::SystemClock;
use noetl_tools::ToolRegistry;
use noetl_worker::{DrainOutcome, RemoteOptions, RemoteWorker};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::mode::{WorkerMode, act_on_all, act_on_one};
use super::serve::start_logging;
use crate::arguments::{IsolationArguments, WorkerArguments};
use crate::bus::{self, NATS_URL};
use crate::error::{CliError, ErrorKind};
use crate::output;
use crate::remote::Remote;
use crate::settings::{number, setting};
use crate::signals::StopRequests;
use crate::{isolation, runtime, signals};

const SLOTS: &str = "NOETL_WORKER_SLOTS";
const POOL: &str = "NOETL_WORKER_POOL";
const LABELS: &str = "NOETL_WORKER_LABELS";
const NAME: &str = "NOETL_WORKER_NAME";
const LISTEN: &str = "NOETL_WORKER_LISTEN";
const RESULT_MAX: &str = "NOETL_WORKER_RESULT_MAX_MB";
const GRACE: &str = "NOETL_WORKER_GRACE_SECS";

/// Default number of steps at a time.
const SLOTS_DEFAULT: usize = 16;

/// Default maximum size of a result, in bytes. Large results are uploaded separately, so they cost
/// memory only in this process.
const RESULT_DEFAULT: usize = 64 << 20;

/// Default time for running steps to finish after a stop request.
const GRACE_DEFAULT: Duration = Duration::from_secs(30);

pub(crate) fn main(arguments: &WorkerArguments) -> Result<ExitCode, CliError> {
    secrecy::leave_environment(arguments)?;
    start_logging();
    let settings = Settings::read(arguments, setting)?;
    let mut server = arguments.remote();
    if let Some(token) = secrecy::token_in_file(arguments)? {
        server.token = Some(token);
    }
    let remote = Remote::open(&server)?;
    let runtime = tokio::runtime::Runtime::new();
    let runtime = runtime.map_err(|error| CliError::from_error(ErrorKind::Config, &error))?;
    match settings.mode.clone() {
        WorkerMode::Subscription(path) => runtime.block_on(subscribe(remote, settings, path)),
        WorkerMode::Steps { subscriptions } => {
            runtime.block_on(work(remote, settings, subscriptions))
        }
    }
}

/// Runs one subscription until it ends or until a stop request.
async fn subscribe(remote: Remote, settings: Settings, path: String) -> Result<ExitCode, CliError> {
    let stop = StopRequests::listen();
    let mut stop = stop.map_err(|error| CliError::from_error(ErrorKind::Config, &error))?;
    let listener = match settings.listen {
        Some(address) => Some(listen(address).await?),
        None => None,
    };
    let server = remote.client.base().as_str().trim_end_matches('/');
    let mut lines = vec![format!("noetl worker {} acts on {path} of {server}", settings.name)];
    if let Some(address) = listener.as_ref().and_then(|listener| listener.local_addr().ok()) {
        lines.push(format!("  health    http://{address}/health"));
    }
    lines.push("  stop      Ctrl-C".to_owned());
    let tally = Arc::new(MessageCounters::default());
    let serving =
        listener.map(|listener| tokio::spawn(health::serve_subscription(listener, tally.clone())));
    let mut runtime = act_on_one(&remote, settings.name, path, tally)?;
    output::note(&lines.join("\n"));
    tokio::select! {
        () = runtime.ended() => {}
        () = stop.next() => {
            output::note("stopping: messages under way are answered for");
            tokio::select! {
                () = runtime.close() => {}
                // The source redelivers messages in flight.
                () = stop.next() => return Ok(ExitCode::from(130)),
            }
        }
    }
    if let Some(serving) = serving {
        serving.abort();
    }
    Ok(ExitCode::SUCCESS)
}

async fn work(
    remote: Remote,
    settings: Settings,
    subscriptions: bool,
) -> Result<ExitCode, CliError> {
    signals::survive_file_size_limit();
    let stop = StopRequests::listen();
    let mut stop = stop.map_err(|error| CliError::from_error(ErrorKind::Config, &error))?;
    let listener = match settings.listen {
        Some(address) => Some(listen(address).await?),
        None => None,
    };
    let health_at = listener.as_ref().and_then(|listener| listener.local_addr().ok());
    let slots = settings.slots;
    let mut tools = tools(settings.result_max, &settings.isolation)?;
    if let Some(file) = settings.token_file.filter(|file| file.as_os_str() != "-") {
        tools.own.add(file);
    }
    isolation::settle(&mut tools, &settings.isolation).await?;
    let tools = ToolRegistry::standard(tools);
    let options = RemoteOptions {
        name: settings.name,
        pool: settings.pool,
        slots,
        labels: settings.labels,
        uri: health_at.map(|address| format!("http://{address}")),
        grace: settings.grace,
    };
    let mut greeting = greeting(&remote, &options, settings.bus.as_ref());
    greeting.push_str(&format!("\n  isolation {}", tools.isolation()));
    if subscriptions {
        greeting.push_str("\n  acts on   every subscription that fetches its messages");
    }
    let acting = subscriptions.then(|| act_on_all(&remote, options.name.clone())).transpose()?;
    let clock = Arc::new(SystemClock);
    let mut worker = RemoteWorker::new(remote.client.clone(), options, tools, clock);
    if let Some(address) = settings.bus {
        worker = worker.with_bus(Arc::new(NatsStream::open(address)));
    }
    let serving =
        listener.map(|listener| tokio::spawn(health::serve(listener, worker.counters(), slots)));
    let draining = CancellationToken::new();
    let working = worker.run(draining.clone(), || output::note(&greeting));
    let mut working = std::pin::pin!(working);
    let ended = tokio::select! {
        ended = &mut working => ended,
        () = stop.next() => {
            output::note("stopping: running steps may end, the rest is given back");
            draining.cancel();
            tokio::select! {
                ended = &mut working => ended,
                // The leases of running commands expire, and the server reissues the commands.
                () = stop.next() => return Ok(ExitCode::from(130)),
            }
        }
    };
    if let Some(acting) = acting {
        acting.close().await;
    }
    if let Some(serving) = serving {
        serving.abort();
    }
    match ended.map_err(|error| remote.failure(&error))? {
        DrainOutcome::Whole => {}
        DrainOutcome::GaveBack => output::note("steps that took too long to end were given back"),
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the tool options of this process, with results of at most `result_max` bytes.
fn tools(result_max: usize, said: &IsolationArguments) -> Result<noetl_tools::Options, CliError> {
    let tools = runtime::tools(said)?;
    let limits = noetl_tools::OutputLimits {
        python_result: result_max,
        http_response: result_max,
        sql_result: result_max,
        nats_payload: result_max,
        ..tools.limits
    };
    Ok(noetl_tools::Options { limits, ..tools })
}

async fn listen(address: SocketAddr) -> Result<TcpListener, CliError> {
    TcpListener::bind(address).await.map_err(|error| {
        CliError::new(ErrorKind::Config, format!("could not listen on {address}: {error}"))
            .hint(format!("stop what listens there, or choose another with --listen or {LISTEN}"))
    })
}

fn greeting(remote: &Remote, options: &RemoteOptions, bus: Option<&Address>) -> String {
    let server = remote.client.base().as_str().trim_end_matches('/');
    let mut lines = vec![
        format!("noetl worker {} works for {server}", options.name),
        format!("  pool      {}", options.pool.as_deref().unwrap_or("shared")),
        format!("  slots     {}", options.slots),
    ];
    lines.extend(bus.map(|address| format!("  bus       {address}")));
    lines.extend(options.uri.as_ref().map(|uri| format!("  health    {uri}/health")));
    lines.push("  stop      Ctrl-C".to_owned());
    lines.join("\n")
}

/// Settings of a worker, from flags and the environment.
#[derive(Debug, PartialEq)]
struct Settings {
    mode: WorkerMode,
    name: String,
    pool: Option<String>,
    bus: Option<Address>,
    slots: usize,
    labels: Map,
    listen: Option<SocketAddr>,
    grace: Duration,
    result_max: usize,
    isolation: IsolationArguments,
    token_file: Option<PathBuf>,
}

impl Settings {
    fn read(
        arguments: &WorkerArguments,
        setting: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, CliError> {
        let slots = match arguments.slots {
            Some(slots) => slots,
            None => number(SLOTS, WorkerArguments::SLOTS)?
                .and_then(|slots| usize::try_from(slots).ok())
                .unwrap_or(SLOTS_DEFAULT),
        };
        let grace = match arguments.grace {
            Some(seconds) => Duration::from_secs(seconds),
            None => number(GRACE, 0..=86_400)?
                .and_then(|seconds| u64::try_from(seconds).ok())
                .map_or(GRACE_DEFAULT, Duration::from_secs),
        };
        let result_max = match arguments.result_max {
            Some(mib) => usize::from(mib) << 20,
            None => number(RESULT_MAX, 1..=512)?
                .and_then(|mib| usize::try_from(mib).ok())
                .map_or(RESULT_DEFAULT, |mib| mib << 20),
        };
        let mut labels = Map::new();
        let listed = setting(LABELS).unwrap_or_default();
        let listed = listed.split(',').map(str::trim).filter(|label| !label.is_empty());
        for label in listed {
            let (key, value) = parted(label, LABELS)?;
            labels.insert(key, value.into());
        }
        for label in &arguments.labels {
            let (key, value) = parted(label, "--label")?;
            labels.insert(key, value.into());
        }
        let listen = match (arguments.listen, setting(LISTEN)) {
            (Some(address), _) => Some(address),
            (None, Some(text)) => Some(text.trim().parse().map_err(|_| {
                let message = format!("{LISTEN} is an address with a port, not '{text}'");
                CliError::new(ErrorKind::Config, message).hint("write it as 127.0.0.1:9090")
            })?),
            (None, None) => None,
        };
        let name = match arguments.name.clone().or_else(|| setting(NAME)) {
            Some(name) => name.trim().to_owned(),
            None => own_name(),
        };
        let pool = arguments.pool.clone().or_else(|| setting(POOL));
        let pool = pool.map(|pool| pool.trim().to_owned()).filter(|pool| !pool.is_empty());
        let url = arguments.nats_url.clone().or_else(|| setting(NATS_URL));
        let bus = bus::address(url.as_deref())?;
        let mode = WorkerMode::read(arguments, &setting)?;
        let isolation = arguments.isolation.clone();
        let token_file = secrecy::file(arguments);
        Ok(Self {
            mode,
            name,
            pool,
            bus,
            slots,
            labels,
            listen,
            grace,
            result_max,
            isolation,
            token_file,
        })
    }
}

fn parted(label: &str, origin: &str) -> Result<(String, String), CliError> {
    let parts = label.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
    let (key, value) = parts.filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
        let kind = if origin == LABELS { ErrorKind::Config } else { ErrorKind::User };
        CliError::new(kind, format!("{origin}: '{label}' is no label"))
            .hint("write it as region=west")
    })?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Returns a worker name that is unique among all processes: the host name and a random suffix, so
/// that a restarted process is not mistaken for its predecessor.
fn own_name() -> String {
    let machine = rustix::system::uname();
    let machine = machine.nodename().to_string_lossy();
    let machine: String = machine
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'))
        .take(80)
        .collect();
    let chance = RandomState::new().build_hasher().finish();
    let machine = if machine.is_empty() { "worker" } else { &machine };
    format!("{machine}-{:08x}", chance & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments() -> WorkerArguments {
        WorkerArguments {
            server: None,
            context: None,
            token: None,
            token_file: None,
            nats_url: None,
            subscriptions: false,
            subscription: None,
            slots: Some(3),
            pool: None,
            labels: Vec::new(),
            name: Some("w".to_owned()),
            listen: None,
            grace: Some(1),
            isolation: IsolationArguments::default(),
            result_max: Some(8),
        }
    }

    fn read(arguments: &WorkerArguments, variables: &[(&str, &str)]) -> Result<Settings, String> {
        let setting = |name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Settings::read(arguments, setting).map_err(|failure| failure.text())
    }

    #[test]
    fn flags_win_over_the_environment_and_labels_add_up() {
        let variables = [(LABELS, "a=1, b=2"), (POOL, "gpu"), (NAME, "x"), (LISTEN, "[::1]:9")];
        let given = WorkerArguments { labels: vec!["b=3".to_owned()], ..arguments() };
        let settings = read(&given, &variables).expect("settings");
        assert_eq!((settings.name.as_str(), settings.pool.as_deref()), ("w", Some("gpu")));
        assert_eq!(serde_json::json!(settings.labels), serde_json::json!({"a": "1", "b": "3"}));
        assert_eq!(settings.listen, "[::1]:9".parse().ok());
        assert_eq!((settings.slots, settings.grace), (3, Duration::from_secs(1)));
        assert_eq!(settings.result_max, 8 << 20);
    }

    #[test]
    fn what_cannot_be_used_is_named_with_its_place() {
        for (variable, value, said) in [
            (LISTEN, "here", "NOETL_WORKER_LISTEN is an address with a port, not 'here'"),
            (LABELS, "a=1,b", "NOETL_WORKER_LABELS: 'b' is no label"),
            (
                NATS_URL,
                "http://eve:s3cr3t@h",
                "NOETL_NATS_URL: entry 1 of the NATS URL is not nats://[user:password@]host[:port]",
            ),
        ] {
            assert_eq!(read(&arguments(), &[(variable, value)]), Err(said.to_owned()));
        }
        let given = WorkerArguments { labels: vec!["=x".to_owned()], ..arguments() };
        assert_eq!(read(&given, &[]), Err("--label: '=x' is no label".to_owned()));
    }

    #[test]
    fn no_two_processes_have_the_same_name_of_their_own() {
        assert_ne!(own_name(), own_name());
    }
}
