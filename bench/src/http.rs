//! The control plane over HTTP: starts, reports and claims per second, with clients of the same process
//! over real connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use noetl_api::Client;
use noetl_api::catalog::RegisterRequest;
use noetl_api::events::{EventReportBody, EventRequest};
use noetl_api::execute::ExecuteRequest;
use noetl_control::{ControlPlane, Options};
use noetl_model::{CommandId, ExecutionId, Map};
use noetl_server::App;
use noetl_store::SystemClock;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

use crate::report::line;
use crate::stage::{Medium, Place};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Clients at a time.
const CLIENTS: [usize; 3] = [1, 8, 64];

/// Requests of one measurement, by how many clients send them: one client waits for the disk every time.
const fn requests(clients: usize) -> usize {
    if clients == 1 { 1000 } else { 10_000 }
}

const PLAYBOOK: &str = "\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: bench, path: bench/http}
workflow:
  - step: start
    tool: {kind: noop}
";

/// A server that listens, and a client of it.
struct Served {
    client: Client,
    control: Arc<ControlPlane>,
    stop: oneshot::Sender<()>,
    server: JoinHandle<std::io::Result<()>>,
}

impl Served {
    async fn start(place: &Place) -> Outcome<Self> {
        let options = Options { slots: 0, ..Options::default() };
        let control =
            ControlPlane::open(options, place.store.clone(), Arc::new(SystemClock)).await?;
        let control = Arc::new(control);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let app = App::new(control.clone(), noetl_server::Options::default());
        let stopped = async { drop(stopped.await) };
        let server = tokio::spawn(noetl_server::serve(listener, app, None, stopped));
        let client = Client::new(&format!("http://{address}"))?;
        Ok(Self { client, control, stop, server })
    }

    async fn close(self) -> Outcome<()> {
        let Self { client, control, stop, server } = self;
        drop(client);
        let _ = stop.send(());
        server.await??;
        control.close().await;
        Ok(())
    }
}

/// How long each of many calls took.
struct Times(Vec<Duration>);

impl Times {
    fn at(&self, share: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        // A place in a list, which is far smaller than what a float holds.
        let place = (last as f64 * share) as usize;
        self.0.get(place).map_or(0.0, |time| time.as_secs_f64() * 1e6)
    }
}

/// Calls so many times from so many clients; calls per second, and how long each took, sorted.
async fn called<F, G>(clients: usize, calls: usize, make: F) -> Outcome<(f64, Times)>
where
    F: Fn(usize) -> G + Send + Sync + 'static,
    G: Future<Output = Result<(), noetl_api::ClientError>> + Send,
{
    let (make, next) = (Arc::new(make), Arc::new(AtomicUsize::new(0)));
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..clients {
        let (make, next) = (make.clone(), next.clone());
        tasks.spawn(async move {
            let mut times = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= calls {
                    return Ok::<_, noetl_api::ClientError>(times);
                }
                let asked = Instant::now();
                make(number).await?;
                times.push(asked.elapsed());
            }
        });
    }
    let mut times = Vec::with_capacity(calls);
    while let Some(done) = tasks.join_next().await {
        times.extend(done??);
    }
    let rate = calls as f64 / started.elapsed().as_secs_f64();
    times.sort_unstable();
    Ok((rate, Times(times)))
}

/// Measures starts, reports and claims.
pub(crate) async fn http(medium: &Medium) -> Outcome<Vec<String>> {
    let place = Place::open(medium).await?;
    let served = Served::start(&place).await?;
    let request =
        RegisterRequest { content: PLAYBOOK.to_owned(), resource_type: "Playbook".to_owned() };
    served.client.register(&request, false).await?;
    let mut lines = Vec::new();
    for clients in CLIENTS {
        let client = served.client.clone();
        let started = Arc::new(std::sync::Mutex::new(Vec::new()));
        let ids = started.clone();
        let start = move |_| {
            let (client, ids) = (client.clone(), ids.clone());
            async move {
                let request = ExecuteRequest::path("bench/http", Map::new());
                let reply = client.execute(&request).await?;
                if let Ok(mut ids) = ids.lock() {
                    ids.push(ExecutionId::from(reply.execution_id));
                }
                Ok(())
            }
        };
        let (rate, times) = called(clients, requests(clients), start).await?;
        lines.push(measured("http_execute", medium, clients, rate, &times));
        let ids = started.lock().map(|ids| ids.clone()).unwrap_or_default();
        lines.push(events(&served, medium, clients, ids.clone()).await?);
        lines.push(claims(&served, medium, clients, ids).await?);
    }
    served.close().await?;
    drop(place.close().await);
    Ok(lines)
}

async fn events(
    served: &Served,
    medium: &Medium,
    clients: usize,
    executions: Vec<ExecutionId>,
) -> Outcome<String> {
    let client = served.client.clone();
    let said = move |number: usize| {
        let (client, execution) = (client.clone(), executions[number % executions.len()]);
        async move {
            let payload = json!({"rows": number, "place": "somewhere", "note": "seen by a worker"});
            let said = EventReportBody::new("start", "bench.noted", payload);
            let request = EventRequest { execution_id: execution.into(), said };
            client.report(&request).await.map(|_| ())
        }
    };
    let (rate, times) = called(clients, requests(clients), said).await?;
    Ok(measured("http_events", medium, clients, rate, &times))
}

/// Claims the first command of every execution.
async fn claims(
    served: &Served,
    medium: &Medium,
    clients: usize,
    executions: Vec<ExecutionId>,
) -> Outcome<String> {
    let mut commands: Vec<CommandId> = Vec::with_capacity(executions.len());
    for execution in executions {
        let log = served.client.log(execution, 0, 10).await?;
        let issued =
            log.events.iter().find(|event| event.event_type.as_deref() == Some("command.issued"));
        let issued = issued.ok_or_else(|| format!("execution {execution} issued no command"))?;
        commands.push(CommandId::new(issued.event_id.get()));
    }
    let (client, calls) = (served.client.clone(), commands.len());
    let claim = move |number: usize| {
        let (client, command) = (client.clone(), commands[number]);
        async move { client.claim(command, "bench").await.map(|_| ()) }
    };
    let (rate, times) = called(clients, calls, claim).await?;
    Ok(measured("http_claim", medium, clients, rate, &times))
}

fn measured(name: &str, medium: &Medium, clients: usize, rate: f64, times: &Times) -> String {
    let fields = [
        ("clients", clients as f64),
        ("per_second", rate),
        ("p50_us", times.at(0.5)),
        ("p99_us", times.at(0.99)),
    ];
    line(name, medium.name(), &fields)
}
