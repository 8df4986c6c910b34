//! What commands print, on its way to the server.
//!
//! Whoever prints never waits: texts go into a bounded queue and are sent in batches. When more is
//! printed than the server takes, or it is away for longer than a few tries, texts are dropped and
//! counted: a line is worth less than the step that prints it.

use std::sync::Arc;
use std::time::Duration;

use noetl_api::logs::{LineGiven, LogRequest};
use noetl_api::work;
use noetl_control::LINES_MAX;
use noetl_model::placeholder::defuse;
use noetl_model::{Clock, CommandId, ExecutionId, Tenant, Timestamp, Value};
use noetl_tools::{LogSink, Stream};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::counters::Happened;
use super::link::{Link, chain};

/// Texts that may wait to be sent.
const QUEUE_MAX: usize = 4096;

/// How long texts gather before they are sent.
const GATHER: Duration = Duration::from_millis(100);

/// Bytes of one request, well below what servers take.
const BYTES_MAX: usize = 512 << 10;

/// The pauses before a request is tried again that got no answer.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(3)];

/// How long a command that has ended waits for its lines to be sent.
const FLUSH_MAX: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Printer {
    pub(crate) execution: ExecutionId,
    pub(crate) command: CommandId,
    pub(crate) tenant: Tenant,
}

struct Printed {
    printer: Arc<Printer>,
    at: Timestamp,
    stream: Stream,
    text: String,
}

enum Work {
    Print(Printed),
    /// Somebody waits until everything before this is sent, or was given up.
    Flush(oneshot::Sender<()>),
}

/// Where commands print. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Lines {
    queue: mpsc::Sender<Work>,
    clock: Arc<dyn Clock>,
    link: Arc<Link>,
}

impl Lines {
    /// Lines that a task sends until this fires.
    pub(crate) fn start(link: &Arc<Link>, clock: Arc<dyn Clock>, stop: &CancellationToken) -> Self {
        let (queue, work) = mpsc::channel(QUEUE_MAX);
        let (sender, stop) = (Sender { link: link.clone() }, stop.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = sender.run(work) => {}
                () = stop.cancelled() => {}
            }
        });
        Self { queue, clock, link: link.clone() }
    }

    /// Where a command prints. Never waits.
    pub(crate) fn sink(&self, printer: Printer) -> LogSink {
        let (own, printer) = (self.clone(), Arc::new(printer));
        LogSink::new(move |stream, text| {
            let (at, text) = (own.clock.now(), text.to_owned());
            let printed = Printed { printer: printer.clone(), at, stream, text };
            if own.queue.try_send(Work::Print(printed)).is_err() {
                own.link.counters.count(Happened::LineDropped);
            }
        })
    }

    /// Waits a while for what was printed to be sent.
    pub(crate) async fn flush(&self) {
        let (done, is_done) = oneshot::channel();
        let flush = async {
            if self.queue.send(Work::Flush(done)).await.is_ok() {
                // A sender that stopped has nothing left to send.
                let _ = is_done.await;
            }
        };
        // Too long: the report of the command counts for more than its lines.
        let _ = tokio::time::timeout(FLUSH_MAX, flush).await;
    }
}

struct Sender {
    link: Arc<Link>,
}

impl Sender {
    async fn run(&self, mut work: mpsc::Receiver<Work>) {
        let mut batch = Vec::new();
        while work.recv_many(&mut batch, QUEUE_MAX).await > 0 {
            if batch.iter().all(|one| matches!(one, Work::Print(_))) {
                let gathered = async {
                    while let Some(one) = work.recv().await {
                        let is_flush = matches!(one, Work::Flush(_));
                        batch.push(one);
                        if is_flush || batch.len() >= QUEUE_MAX {
                            break;
                        }
                    }
                };
                // What has gathered by then is sent.
                let _ = tokio::time::timeout(GATHER, gathered).await;
            }
            self.send_all(std::mem::take(&mut batch)).await;
        }
    }

    async fn send_all(&self, batch: Vec<Work>) {
        let (mut waiters, mut requests): (Vec<_>, Vec<Request>) = (Vec::new(), Vec::new());
        for one in batch {
            match one {
                Work::Flush(waiter) => waiters.push(waiter),
                Work::Print(printed) => {
                    let found = requests.iter_mut().rev().find(|it| it.printer == printed.printer);
                    match found.filter(|request| request.has_room()) {
                        Some(request) => request.add(printed),
                        None => requests.push(Request::of(printed)),
                    }
                }
            }
        }
        for request in requests {
            self.send(request).await;
        }
        for waiter in waiters {
            // Whoever waited may have gone.
            let _ = waiter.send(());
        }
    }

    async fn send(&self, request: Request) {
        let Request { printer, mut lines, .. } = request;
        for line in &mut lines {
            self.clean(&printer.tenant, line);
        }
        let request = LogRequest { command_id: printer.command.to_string(), lines };
        let mut pauses = PAUSES.into_iter();
        loop {
            let Err(error) = self.link.ask(work::print(printer.execution, &request)).await else {
                return;
            };
            match pauses.next().filter(|_| error.is_passing()) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => {
                    self.link.counters.count(Happened::LineDropped);
                    warn!(
                        execution.id = %printer.execution, error = chain(&error),
                        "lines of a step are lost"
                    );
                    return;
                }
            }
        }
    }

    /// Takes out the secrets this process knows, and what not every store can keep.
    fn clean(&self, tenant: &Tenant, line: &mut LineGiven) {
        let mut value = Value::String(line.text.replace('\0', "\u{fffd}"));
        defuse(&mut value);
        self.link.redaction.value(tenant, &mut value);
        if let Value::String(text) = value {
            line.text = text;
        }
    }
}

/// What goes in one request.
struct Request {
    printer: Arc<Printer>,
    lines: Vec<LineGiven>,
    bytes: usize,
}

impl Request {
    fn of(printed: Printed) -> Self {
        let printer = printed.printer.clone();
        let mut request = Self { printer, lines: Vec::new(), bytes: 0 };
        request.add(printed);
        request
    }

    fn has_room(&self) -> bool {
        self.lines.len() < LINES_MAX && self.bytes < BYTES_MAX
    }

    /// Adds a text; one that goes on after whole lines joins them, so that a secret over several
    /// lines is seen whole.
    fn add(&mut self, printed: Printed) {
        self.bytes += printed.text.len();
        let stream = printed.stream.as_str();
        match self.lines.last_mut() {
            Some(last) if last.stream == stream && last.text.ends_with('\n') => {
                last.text.push_str(&printed.text);
            }
            _ => {
                let (at, stream) = (Some(printed.at), stream.to_owned());
                self.lines.push(LineGiven { at, stream, text: printed.text });
            }
        }
    }
}
