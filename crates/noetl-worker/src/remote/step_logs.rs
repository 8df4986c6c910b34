//! Ships step logs to the server.
//!
//! Printing never blocks: text is queued in a bounded channel and sent in batches. If commands
//! print more than the server accepts, or the server is unavailable for longer than a few retries,
//! text is dropped and counted. Step logs matter less than the step that prints them.

use std::sync::Arc;
use std::time::Duration;

use noetl_api::connection::LogBatch;
use noetl_api::logs::{LogLineItem, LogRequest};
use noetl_api::work;
use noetl_model::placeholder::defuse;
use noetl_model::{Clock, CommandId, ExecutionId, Tenant, Timestamp, Value};
use noetl_tools::{LogSink, Stream};
use noetl_work::STEP_LOG_LINES_MAX;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::line::Line;
use super::link::{ServerLink, chain};
use super::metrics::WorkerEvent;

/// Maximum number of queued texts.
const QUEUE_MAX: usize = 4096;

/// Time that text accumulates before it is sent.
const GATHER: Duration = Duration::from_millis(100);

/// Size in bytes at which a request takes no more text, well below the servers' limit.
const BYTES_MAX: usize = 512 << 10;

/// Delays before the retries of a failed request.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(3)];

/// Time that a finished command waits for its step logs to be sent.
const FLUSH_MAX: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogOrigin {
    pub(crate) execution: ExecutionId,
    pub(crate) command: CommandId,
    pub(crate) tenant: Tenant,
}

struct Printed {
    printer: Arc<LogOrigin>,
    at: Timestamp,
    stream: Stream,
    text: String,
}

enum LogWork {
    Print(Printed),
    /// Signals the sender once everything queued before this is sent or dropped.
    Flush(oneshot::Sender<()>),
}

/// Sink for the step logs of all commands. Cheap to clone.
#[derive(Clone)]
pub(crate) struct LogShipper {
    queue: mpsc::Sender<LogWork>,
    clock: Arc<dyn Clock>,
    link: Arc<ServerLink>,
}

impl LogShipper {
    /// Starts the task that ships step logs until `stop` is cancelled.
    pub(crate) fn start(
        link: &Arc<ServerLink>,
        line: Line,
        clock: Arc<dyn Clock>,
        stop: &CancellationToken,
    ) -> Self {
        let (queue, work) = mpsc::channel(QUEUE_MAX);
        let (sender, stop) = (LogSender { link: link.clone(), line }, stop.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = sender.run(work) => {}
                () = stop.cancelled() => {}
            }
        });
        Self { queue, clock, link: link.clone() }
    }

    /// Returns the sink for a command's step logs. Writing to it never blocks.
    pub(crate) fn sink(&self, printer: LogOrigin) -> LogSink {
        let (own, printer) = (self.clone(), Arc::new(printer));
        LogSink::new(move |stream, text| {
            let (at, text) = (own.clock.now(), text.to_owned());
            let printed = Printed { printer: printer.clone(), at, stream, text };
            if own.queue.try_send(LogWork::Print(printed)).is_err() {
                own.link.counters.count(WorkerEvent::LineDropped);
            }
        })
    }

    /// Waits until queued text is sent, for at most [`FLUSH_MAX`].
    pub(crate) async fn flush(&self) {
        let (done, is_done) = oneshot::channel();
        let flush = async {
            if self.queue.send(LogWork::Flush(done)).await.is_ok() {
                // A task that has stopped has nothing left to send.
                let _ = is_done.await;
            }
        };
        // On a timeout, the command's completion takes precedence over its step logs.
        let _ = tokio::time::timeout(FLUSH_MAX, flush).await;
    }
}

struct LogSender {
    link: Arc<ServerLink>,
    line: Line,
}

impl LogSender {
    async fn run(&self, mut work: mpsc::Receiver<LogWork>) {
        let mut batch = Vec::new();
        while work.recv_many(&mut batch, QUEUE_MAX).await > 0 {
            if batch.iter().all(|one| matches!(one, LogWork::Print(_))) {
                let gathered = async {
                    while let Some(one) = work.recv().await {
                        let is_flush = matches!(one, LogWork::Flush(_));
                        batch.push(one);
                        if is_flush || batch.len() >= QUEUE_MAX {
                            break;
                        }
                    }
                };
                // Sends the text that has accumulated by then.
                let _ = tokio::time::timeout(GATHER, gathered).await;
            }
            self.send_all(std::mem::take(&mut batch)).await;
        }
    }

    async fn send_all(&self, batch: Vec<LogWork>) {
        let (mut waiters, mut requests): (Vec<_>, Vec<LogUpload>) = (Vec::new(), Vec::new());
        for one in batch {
            match one {
                LogWork::Flush(waiter) => waiters.push(waiter),
                LogWork::Print(printed) => {
                    let last = requests.iter_mut().rev().find(|it| it.printer == printed.printer);
                    match last.filter(|request| request.has_room()) {
                        Some(request) => request.add(printed),
                        None => requests.push(LogUpload::from_printed(printed)),
                    }
                }
            }
        }
        for request in requests {
            self.send(request).await;
        }
        for waiter in waiters {
            // The flushing task may have been dropped.
            let _ = waiter.send(());
        }
    }

    async fn send(&self, request: LogUpload) {
        let LogUpload { printer, mut lines, .. } = request;
        for line in &mut lines {
            self.clean(&printer.tenant, line);
        }
        let (execution_id, event_id) = (printer.execution.into(), printer.command.into());
        let batch = LogBatch { execution_id, event_id, lines };
        if self.line.print(&batch).await {
            return;
        }
        let LogBatch { lines, .. } = batch;
        let request = LogRequest { command_id: printer.command.to_string(), lines };
        let mut pauses = PAUSES.into_iter();
        loop {
            let Err(error) = self.link.request(work::print(printer.execution, &request)).await
            else {
                return;
            };
            match pauses.next().filter(|_| error.is_passing()) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => {
                    self.link.counters.count(WorkerEvent::LineDropped);
                    warn!(
                        execution.id = %printer.execution, error = chain(&error),
                        "step logs dropped"
                    );
                    return;
                }
            }
        }
    }

    /// Redacts known secrets and replaces NUL characters, which not every store accepts.
    fn clean(&self, tenant: &Tenant, line: &mut LogLineItem) {
        let mut value = Value::String(line.text.replace('\0', "\u{fffd}"));
        defuse(&mut value);
        self.link.redaction.value(tenant, &mut value);
        if let Value::String(text) = value {
            line.text = text;
        }
    }
}

/// Text of one request to the server.
struct LogUpload {
    printer: Arc<LogOrigin>,
    lines: Vec<LogLineItem>,
    bytes: usize,
}

impl LogUpload {
    fn from_printed(printed: Printed) -> Self {
        let printer = printed.printer.clone();
        let mut request = Self { printer, lines: Vec::new(), bytes: 0 };
        request.add(printed);
        request
    }

    fn has_room(&self) -> bool {
        self.lines.len() < STEP_LOG_LINES_MAX && self.bytes < BYTES_MAX
    }

    /// Adds text. Appends it to the last entry if that ends with a newline, so that a secret that
    /// spans several lines is seen as a whole.
    fn add(&mut self, printed: Printed) {
        self.bytes += printed.text.len();
        let stream = printed.stream.as_str();
        match self.lines.last_mut() {
            Some(last) if last.stream == stream && last.text.ends_with('\n') => {
                last.text.push_str(&printed.text);
            }
            _ => {
                let (at, stream) = (Some(printed.at), stream.to_owned());
                self.lines.push(LogLineItem { at, stream, text: printed.text });
            }
        }
    }
}
