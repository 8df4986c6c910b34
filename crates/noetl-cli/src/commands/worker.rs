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
use noetl_config::tree::{self, Steps};
use noetl_config::{Origin, Settings};
use noetl_model::Map;
use noetl_sources::MessageCounters;
use noetl_store::SystemClock;
use noetl_tools::ToolRegistry;
use noetl_worker::{DrainOutcome, RemoteOptions, RemoteWorker, Transport};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::mode::{WorkerMode, act_on_all, act_on_one};
use super::serve::start_logging;
use crate::arguments::{RemoteArguments, WorkerArguments};
use crate::error::{CliError, ErrorKind};
use crate::output;
use crate::remote::Remote;
use crate::signals::StopRequests;
use crate::{bus, isolation, runtime, settings, signals};

const LISTEN: &str = "NOETL_WORKER_LISTEN";

pub(crate) fn main(arguments: &WorkerArguments) -> Result<ExitCode, CliError> {
    let layers = arguments.steps.over(&arguments.flags.settings());
    secrecy::leave_environment(arguments, &layers)?;
    start_logging();
    let settings = WorkerSettings::read(arguments, &layers)?;
    let server = RemoteArguments { context: arguments.context.clone(), ..Default::default() };
    let layers = match secrecy::token_in_file(settings.token_file.as_deref())? {
        Some(token) => layers.with_flags([("client.token", "token-file", (&*token).into())]),
        None => layers,
    };
    let remote = Remote::with_settings(&server, &layers)?;
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
async fn subscribe(
    remote: Remote,
    settings: WorkerSettings,
    path: String,
) -> Result<ExitCode, CliError> {
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
            output::note("stopping: waiting for messages in flight");
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
    settings: WorkerSettings,
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
    let mut tools = tools(settings.result_max, &settings.steps)?;
    if let Some(file) = settings.token_file.filter(|file| file.as_os_str() != "-") {
        tools.own.add(file);
    }
    isolation::settle(&mut tools, &settings.steps).await?;
    let tools = ToolRegistry::standard(tools);
    let options = RemoteOptions {
        name: settings.name,
        pool: settings.pool,
        slots,
        labels: settings.labels,
        uri: health_at.map(|address| format!("http://{address}")),
        grace: settings.grace,
        transport: settings.transport,
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
            output::note("stopping: waiting for running steps; the rest is released");
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
fn tools(result_max: usize, steps: &Steps) -> Result<noetl_tools::Options, CliError> {
    let tools = runtime::tools(steps)?;
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

/// Settings of a worker process.
#[derive(Debug)]
struct WorkerSettings {
    mode: WorkerMode,
    name: String,
    pool: Option<String>,
    bus: Option<Address>,
    slots: usize,
    labels: Map,
    listen: Option<SocketAddr>,
    grace: Duration,
    transport: Transport,
    result_max: usize,
    steps: Steps,
    token_file: Option<PathBuf>,
}

impl WorkerSettings {
    fn read(arguments: &WorkerArguments, settings: &Settings) -> Result<Self, CliError> {
        let worker: tree::Worker = settings::decode(settings)?;
        let mut labels = Map::new();
        for (label, origin) in settings.items_of("worker.labels") {
            let (key, value) = parted(&label, &origin)?;
            labels.insert(key, value.into());
        }
        let pool = worker.pool.as_deref().map(str::trim).filter(|pool| !pool.is_empty());
        Ok(Self {
            mode: WorkerMode::read(arguments, &worker)?,
            name: worker.name.as_deref().map_or_else(own_name, |name| name.trim().to_owned()),
            pool: pool.map(str::to_owned),
            bus: bus::address(settings, &settings::decode(settings)?)?,
            slots: worker.slots,
            labels,
            listen: worker.listen,
            grace: worker.grace_secs,
            transport: match worker.transport.as_str() {
                "long_poll" => Transport::LongPoll,
                _ => Transport::Connection,
            },
            result_max: worker.result_max_mb << 20,
            steps: settings::decode(settings)?,
            token_file: worker.token_file.map(secrecy::trimmed),
        })
    }
}

/// Checks the settings of a worker process.
pub(super) fn check(settings: &Settings) -> Result<(), CliError> {
    WorkerSettings::read(&WorkerArguments::default(), settings).map(drop)
}

fn parted(label: &str, origin: &Origin) -> Result<(String, String), CliError> {
    let parts = label.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
    let (key, value) = parts.filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
        let is_flag = matches!(origin, Origin::Flag(_));
        let kind = if is_flag { ErrorKind::User } else { ErrorKind::Config };
        let name = origin.name("worker.labels");
        CliError::new(kind, format!("{name}: '{label}' is no label"))
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
    use noetl_config::RawValue;

    use super::*;
    use crate::arguments::{Flags, WorkerFlags};

    const LABELS: &str = "NOETL_WORKER_LABELS";

    fn read(
        flags: &[(&str, &str)],
        labels: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<WorkerSettings, String> {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        let settings = Settings::new(Vec::new(), variables);
        let flags = flags.iter().map(|(key, value)| (*key, Some(*value)));
        let settings = Flags::<WorkerFlags>::with_values(flags).over(&settings);
        let labels: Vec<String> = labels.iter().map(|&label| label.to_owned()).collect();
        let settings = match labels.is_empty() {
            true => settings,
            false => settings.with_flags([("worker.labels", "label", RawValue::List(labels))]),
        };
        WorkerSettings::read(&WorkerArguments::default(), &settings)
            .map_err(|failure| failure.text())
    }

    #[test]
    fn flags_override_the_environment_and_labels_accumulate() {
        let variables = [
            (LABELS, "a=1, b=2"),
            ("NOETL_WORKER_POOL", " gpu "),
            ("NOETL_WORKER_NAME", "x"),
            (LISTEN, "[::1]:9"),
        ];
        let flags = [
            ("worker.slots", "3"),
            ("worker.name", "w"),
            ("worker.grace_secs", "1"),
            ("worker.result_max_mb", "8"),
        ];
        let settings = read(&flags, &["b=3", "c=4,5"], &variables).expect("settings");
        assert_eq!((settings.name.as_str(), settings.pool.as_deref()), ("w", Some("gpu")));
        let labels = serde_json::json!({"a": "1", "b": "3", "c": "4,5"});
        assert_eq!(serde_json::json!(settings.labels), labels);
        assert_eq!(settings.listen, "[::1]:9".parse().ok());
        assert_eq!((settings.slots, settings.grace), (3, Duration::from_secs(1)));
        assert_eq!(settings.result_max, 8 << 20);
    }

    #[test]
    fn invalid_settings_are_reported_with_their_location() {
        for (variable, value, expected) in [
            (LISTEN, "here", "NOETL_WORKER_LISTEN is an address with a port, not 'here'"),
            (LABELS, "a=1,b", "NOETL_WORKER_LABELS: 'b' is no label"),
            (
                "NOETL_NATS_URL",
                "http://eve:s3cr3t@h",
                "NOETL_NATS_URL: entry 1 of the NATS URL is not nats://[user:password@]host[:port]",
            ),
        ] {
            assert_eq!(read(&[], &[], &[(variable, value)]).err().as_deref(), Some(expected));
        }
        let refused = read(&[], &["=x"], &[(LABELS, "a=1")]).err();
        assert_eq!(refused.as_deref(), Some("--label: '=x' is no label"));
    }

    #[test]
    fn default_worker_names_are_unique_per_process() {
        assert_ne!(own_name(), own_name());
    }
}
