//! Messages that become executions: how many a second are accepted from each source, beside how many the
//! control plane accepts from a caller in its own process that has nothing else to do.

mod servers;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use noetl_api::catalog::RegisterRequest;
use noetl_api::events::EventView;
use noetl_api::{Client, calls};
use noetl_control::{ControlPlane, Options};
use noetl_egress::EgressPolicy;
use noetl_journal::StartRequest;
use noetl_local::LocalControlPlane;
use noetl_model::{SubscriptionId, Tenant, Value};
use noetl_secrets::EncryptionKey;
use noetl_server::App;
use noetl_sources::{SourceRegistry, SubscriptionRuntime};
use noetl_store::SystemClock;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

use self::servers::Venue;
use crate::chain::as_f64;
use crate::report::{self, line};
use crate::stage::{Medium, Place};
use crate::usage::cpu_seconds;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Callers of the control plane, and senders of webhooks, at a time: as many starts as a subscription has under
/// way.
const CALLERS: usize = 64;

const PLAYBOOK: &str = "\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: order, path: bench/order}
workflow:
  - step: start
    tool: {kind: noop}
";

/// The name of the measurement that has no server of its own.
const WEBHOOK: &str = "messages_webhook";

/// What a sender of webhooks shows.
const SECRET: &str = "open sesame";

/// The body of a message.
fn body(number: usize) -> String {
    json!({"order": number, "customer": "somebody", "total": 129.95, "currency": "EUR"}).to_string()
}

/// A server that listens, on a control plane without a worker: accepting is what is measured.
struct Served {
    control: Arc<ControlPlane>,
    base: String,
    client: Client,
    place: Place,
    stop: oneshot::Sender<()>,
    server: JoinHandle<std::io::Result<()>>,
}

impl Served {
    async fn start(medium: &Medium) -> Outcome<Self> {
        let place = Place::open(medium).await?;
        let options = Options {
            slots: 0,
            encryption_key: Some(EncryptionKey::generate()),
            ..Options::default()
        };
        let control =
            ControlPlane::open(options, place.store.clone(), Arc::new(SystemClock)).await?;
        let control = Arc::new(control);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let base = format!("http://{}", listener.local_addr()?);
        let (stop, stopped) = oneshot::channel::<()>();
        // All callers have one address, and ask as fast as they can.
        let options = noetl_server::Options {
            address_rate_limit: None,
            listener_rate_limit: None,
            ..noetl_server::Options::default()
        };
        let app = App::new(control.clone(), options);
        let stopped = async { drop(stopped.await) };
        let server = tokio::spawn(noetl_server::serve(listener, app, None, stopped));
        let client = Client::new(&base)?;
        let served = Self { control, base, client, place, stop, server };
        served.register("Playbook", PLAYBOOK.to_owned()).await?;
        Ok(served)
    }

    async fn register(&self, kind: &str, content: String) -> Outcome<()> {
        let request = RegisterRequest { content, resource_type: kind.to_owned() };
        self.client.register(&request, false).await?;
        Ok(())
    }

    /// Registers a subscription with these keys of its `spec`.
    async fn subscribe(&self, keys: &str) -> Outcome<SubscriptionId> {
        let content = format!(
            "apiVersion: noetl.io/v1\nkind: Subscription\nmetadata: {{name: orders, path: bench/orders}}\n\
             spec:\n{keys}  dedup: {{enabled: true, window_secs: 3600}}\n  \
             dispatch: {{playbook: bench/order}}\n"
        );
        self.register("Subscription", content).await?;
        let row = self
            .control
            .triggers
            .subscriptions
            .register(&Tenant::default(), "bench/orders")
            .await?;
        Ok(row.id)
    }

    /// Waits until somebody listens at the source.
    async fn is_heard(&self, id: SubscriptionId) -> Outcome<()> {
        loop {
            let log = self.client.ask(calls::subscription_events(id.get(), 0, Some(100))).await?;
            let is_connected = |event: &EventView| {
                event.event_type.as_deref() == Some("subscription.source.connected")
            };
            if log.value.events.iter().any(is_connected) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// How many executions were accepted of messages.
    fn accepted(&self) -> u64 {
        self.control
            .journal
            .metrics
            .execute_outcomes
            .with_label_values(&["subscription", "new"])
            .get()
    }

    async fn close(self) -> Outcome<()> {
        let Self { control, client, place, stop, server, .. } = self;
        drop(client);
        let _ = stop.send(());
        server.await??;
        control.close().await;
        drop(place.close().await);
        Ok(())
    }
}

/// Measures every source that is wanted, each on a store of its own, and prints a line for each.
pub(crate) async fn messages(
    fresh: &mut impl FnMut() -> Outcome<Medium>,
    wanted: &impl Fn(&str) -> bool,
    count: usize,
) -> Outcome<()> {
    let venues: Vec<Venue> = Venue::ALL.into_iter().filter(|venue| wanted(venue.name())).collect();
    if venues.is_empty() && !wanted(WEBHOOK) {
        return Ok(());
    }
    let direct = direct(&fresh()?, count).await?;
    for venue in venues {
        let Some(server) = venue.start()? else { continue };
        let medium = fresh()?;
        let served = Served::start(&medium).await?;
        let cpu = cpu_seconds();
        let rate = pulled(&served, &server, count).await?;
        let cpu = cpu_seconds() - cpu;
        served.close().await?;
        report::print(&measured(venue.name(), &medium, count, rate, direct, cpu));
    }
    if wanted(WEBHOOK) {
        let medium = fresh()?;
        let served = Served::start(&medium).await?;
        let cpu = cpu_seconds();
        let rate = pushed(&served, count).await?;
        let cpu = cpu_seconds() - cpu;
        served.close().await?;
        report::print(&measured(WEBHOOK, &medium, count, rate, direct, cpu));
    }
    Ok(())
}

fn measured(name: &str, medium: &Medium, count: usize, rate: f64, direct: f64, cpu: f64) -> String {
    let fields = [
        ("messages", as_f64(count)),
        ("accepted_per_second", rate),
        ("direct_per_second", direct),
        ("of_direct", rate / direct),
        ("cpu_ms_per_1000", cpu * 1e6 / as_f64(count)),
    ];
    line(name, medium.name(), &fields)
}

/// Executions per second that are accepted from callers in the same process.
async fn direct(medium: &Medium, count: usize) -> Outcome<f64> {
    let served = Served::start(medium).await?;
    let (control, next) = (served.control.clone(), Arc::new(AtomicUsize::new(0)));
    let started = Instant::now();
    let mut callers: JoinSet<Result<(), String>> = JoinSet::new();
    for _ in 0..CALLERS {
        let (control, next) = (control.clone(), next.clone());
        callers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Ok(());
                }
                let payload = serde_json::from_str::<Value>(&body(number));
                let payload = payload.map_err(|error| error.to_string())?;
                let request = StartRequest {
                    path: Some("bench/order".to_owned()),
                    payload: payload.as_object().cloned().unwrap_or_default(),
                    ..StartRequest::default()
                };
                let started = control.journal.executions.start(&Tenant::default(), request).await;
                started.map_err(|error| error.to_string())?;
            }
        });
    }
    while let Some(done) = callers.join_next().await {
        done??;
    }
    let rate = as_f64(count) / started.elapsed().as_secs_f64();
    drop(control);
    served.close().await?;
    Ok(rate)
}

/// Messages per second that a subscription accepts: all of them wait when it begins, where the server keeps
/// them for who was never there.
async fn pulled(served: &Served, server: &servers::Server, count: usize) -> Outcome<f64> {
    if !server.is_live() {
        server.send(count).await?;
    }
    let id = served.subscribe(&server.keys()).await?;
    let tenant = Tenant::default();
    let plane = Arc::new(LocalControlPlane::new(served.control.clone(), tenant));
    let started = Instant::now();
    let runtime = SubscriptionRuntime::all(
        plane,
        SourceRegistry::standard(EgressPolicy::default()),
        noetl_sources::Options::new("bench"),
    );
    let started = if server.is_live() {
        served.is_heard(id).await?;
        let started = Instant::now();
        server.send(count).await?;
        started
    } else {
        started
    };
    let wanted = u64::try_from(count)?;
    while served.accepted() < wanted {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let rate = as_f64(count) / started.elapsed().as_secs_f64();
    runtime.close().await;
    Ok(rate)
}

/// Webhooks per second that are answered with 202.
async fn pushed(served: &Served, count: usize) -> Outcome<f64> {
    let kept = json!({"name": "hook", "type": "bearer", "data": {"secret": SECRET}});
    let http = reqwest::Client::new();
    let answer = http.post(format!("{}/api/credentials", served.base)).json(&kept).send().await?;
    answer.error_for_status()?;
    let keys = "  source: webhook\n  mode: push\n  ingress: {gateway_path: /ingress/orders, \
                verify: {type: bearer, secret: hook}}\n";
    served.subscribe(keys).await?;
    let (url, next) = (format!("{}/ingress/orders", served.base), Arc::new(AtomicUsize::new(0)));
    let started = Instant::now();
    let mut senders = JoinSet::new();
    for _ in 0..CALLERS {
        let (http, url, next) = (http.clone(), url.clone(), next.clone());
        senders.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Ok::<_, String>(());
                }
                let request = http
                    .post(&url)
                    .bearer_auth(SECRET)
                    .header("content-type", "application/json")
                    .header("webhook-id", format!("m{number}"))
                    .body(body(number));
                let answer = request.send().await.map_err(|error| error.to_string())?;
                if answer.status().as_u16() != 202 {
                    return Err(format!("a webhook was answered with {}", answer.status()));
                }
            }
        });
    }
    while let Some(done) = senders.join_next().await {
        done??;
    }
    Ok(as_f64(count) / started.elapsed().as_secs_f64())
}
