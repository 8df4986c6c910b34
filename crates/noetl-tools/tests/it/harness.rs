//! Calls in one line, and a look at what processes are left.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use noetl_model::{CommandId, ExecutionId, Failure, Map, Tenant, Value};
use noetl_test_services::{KernelFeature, not_isolated};
use noetl_tools::{Level, LogSink, Options, Stream, ToolCall, ToolRegistry};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Returns a call with only these settings.
pub(crate) fn call(config: Value) -> ToolCall {
    ToolCall {
        execution: ExecutionId::new(7),
        command: CommandId::new(8),
        tenant: Tenant::default(),
        step: Arc::from("load"),
        attempt: 1,
        config: map(config),
        input: Map::new(),
        timeout: None,
        cancel: CancellationToken::new(),
        logs: LogSink::default(),
        context: Map::new(),
        artifacts: None,
        credentials: None,
        trace: None,
    }
}

/// Variable with a copy of the step host, for a test in a process of a user who cannot reach the target directory.
pub(crate) const HOST_VARIABLE: &str = "NOETL_TEST_STEP_HOST";

/// Returns the program of the step host.
pub(crate) fn host() -> PathBuf {
    std::env::var_os(HOST_VARIABLE)
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_noetl-step-host")), PathBuf::from)
}

/// Returns the options if steps can be isolated so, or `None` and records the skip if the kernel lacks
/// a feature for it.
///
/// # Panics
///
/// Panics if the kernel lacks nothing.
pub(crate) async fn isolated(options: Options) -> Option<Options> {
    let Err(error) = options.prove_isolation().await else { return Some(options) };
    not_isolated(&kernel_features(&options), &host(), &error.message);
    None
}

/// Returns the kernel features that these options need.
fn kernel_features(options: &Options) -> Vec<KernelFeature> {
    let isolation = &options.isolation;
    let mut needed = vec![KernelFeature::Landlock];
    if isolation.level >= Level::Namespaces {
        needed.push(KernelFeature::Namespaces);
    }
    if isolation.no_network {
        needed.push(KernelFeature::NetworkNamespaces);
    }
    needed
}

pub(crate) fn map(value: Value) -> Map {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is not a map"),
    }
}

pub(crate) fn registry() -> ToolRegistry {
    ToolRegistry::standard(Options::default())
}

/// Runs one call with tools of its own.
pub(crate) async fn run(kind: &str, config: Value) -> Result<Value, Failure> {
    registry().run(kind, call(config)).await
}

/// Captured output of a step.
#[derive(Clone, Default)]
pub(crate) struct CapturedLog {
    text: Arc<Mutex<String>>,
    more: Arc<Notify>,
}

impl CapturedLog {
    pub(crate) fn sink(&self) -> LogSink {
        let captured = self.clone();
        LogSink::new(move |_: Stream, text| {
            captured.text.lock().unwrap().push_str(text);
            captured.more.notify_one();
        })
    }

    pub(crate) fn text(&self) -> String {
        self.text.lock().unwrap().clone()
    }

    /// Waits for a line that starts with `word` and returns the rest of it.
    pub(crate) async fn line(&self, word: &str) -> String {
        let matching = async {
            loop {
                let text = self.text();
                if let Some(rest) = text.lines().find_map(|line| line.strip_prefix(word)) {
                    return rest.trim().to_owned();
                }
                self.more.notified().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), matching)
            .await
            .unwrap_or_else(|_| panic!("no line with '{word}' in: {}", self.text()))
    }
}

/// Waits until process `pid` is gone or only waits to be reaped.
///
/// A kill is delivered, not done, when the call returns, hence the patience.
pub(crate) async fn assert_gone(pid: &str) {
    assert!(pid.parse::<u32>().is_ok(), "'{pid}' is no process id");
    let stat = Path::new("/proc").join(pid).join("stat");
    for _ in 0..500 {
        match std::fs::read_to_string(&stat) {
            Err(_) => return,
            Ok(text) if text.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")) => {
                return;
            }
            Ok(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
    panic!("process {pid} is still running");
}

/// Returns the failure's detail `key`.
pub(crate) fn detail(failure: &Failure, key: &str) -> Value {
    failure.details.as_ref().map_or(Value::Null, |details| details[key].clone())
}
