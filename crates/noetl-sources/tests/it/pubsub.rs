//! Sources of Pub/Sub, against a server in this process that answers as the REST interface is recorded.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use noetl_sources::SourceError;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use crate::suite::{SourceServer, fetched, open, suite};

/// State of the service.
#[derive(Default)]
struct ServiceState {
    /// Messages that are not acknowledged: a number, the body, and until when it is leased.
    messages: VecDeque<(u64, Vec<u8>, Option<Instant>)>,
    count: u64,
    deliveries: u64,
    /// Valid access token, if the service requires one.
    token: Option<String>,
    asserted: Vec<String>,
}

type Shared = Arc<Mutex<ServiceState>>;

struct Service {
    state: Shared,
    address: SocketAddr,
    running: Option<tokio::runtime::Runtime>,
}

impl Service {
    fn begin() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut service = Self { state: Shared::default(), address, running: None };
        service.serve(listener);
        service
    }

    /// Serves on a separate runtime, so that stopping it closes all connections.
    fn serve(&mut self, listener: std::net::TcpListener) {
        listener.set_nonblocking(true).unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let routes = Router::new()
            .route("/v1/projects/p/subscriptions/{name}", get(look).post(call))
            .route("/token", post(token))
            .layer(axum::extract::DefaultBodyLimit::disable())
            .with_state(self.state.clone());
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, routes).await.unwrap();
        });
        self.running = Some(runtime);
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.shutdown_background();
        }
    }
}

fn refusal(status: StatusCode, message: &str) -> (StatusCode, Json<Value>) {
    (status, Json(json!({"error": {"code": status.as_u16(), "message": message}})))
}

fn check(state: &Shared, headers: &HeaderMap) -> Result<(), (StatusCode, Json<Value>)> {
    let wanted = state.lock().unwrap().token.clone();
    let shown = headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
    match wanted {
        Some(token) if shown != Some(format!("Bearer {token}")) => Err(refusal(
            StatusCode::UNAUTHORIZED,
            "Request had invalid authentication credentials.",
        )),
        None if shown.is_some() => Err(refusal(StatusCode::BAD_REQUEST, "an emulator asks nobody")),
        _ => Ok(()),
    }
}

type Answer = Result<Json<Value>, (StatusCode, Json<Value>)>;

async fn look(State(state): State<Shared>, Path(name): Path<String>, headers: HeaderMap) -> Answer {
    check(&state, &headers)?;
    match name.as_str() {
        "orders" => {
            Ok(Json(json!({"name": "projects/p/subscriptions/orders", "ackDeadlineSeconds": 10})))
        }
        "unseen" => {
            Err(refusal(StatusCode::FORBIDDEN, "User not authorized to perform this action."))
        }
        _ => Err(refusal(StatusCode::NOT_FOUND, "Resource not found (resource=none).")),
    }
}

async fn call(
    State(state): State<Shared>,
    Path(name): Path<String>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Answer {
    check(&state, &headers)?;
    let (_, verb) = name.split_once(':').unwrap();
    let ids = || -> Vec<u64> {
        let ids = body["ackIds"].as_array().unwrap().iter();
        // The number of a message comes before that of its delivery.
        ids.map(|id| id.as_str().unwrap().split_once('-').unwrap().0.parse().unwrap()).collect()
    };
    match verb {
        "pull" => {
            let most = body["maxMessages"].as_u64().unwrap() as usize;
            // The real one holds a request open for longer.
            for _ in 0..20 {
                let received = pulled(&mut state.lock().unwrap(), most);
                if !received.is_empty() {
                    return Ok(Json(json!({"receivedMessages": received})));
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        "acknowledge" => {
            let ids = ids();
            state.lock().unwrap().messages.retain(|(number, ..)| !ids.contains(number));
        }
        "modifyAckDeadline" => {
            let secs = body["ackDeadlineSeconds"].as_u64().unwrap();
            assert!(secs <= 600);
            let ids = ids();
            for (number, _, until) in &mut state.lock().unwrap().messages {
                if ids.contains(number) {
                    // A second of the service is a tenth of one here.
                    *until = (secs > 0).then(|| Instant::now() + Duration::from_millis(100 * secs));
                }
            }
        }
        _ => return Err(refusal(StatusCode::NOT_FOUND, "no such method")),
    }
    Ok(Json(json!({})))
}

fn pulled(state: &mut ServiceState, most: usize) -> Vec<Value> {
    let now = Instant::now();
    let mut received = Vec::new();
    for (number, body, until) in &mut state.messages {
        if received.len() < most && until.is_none_or(|until| until <= now) {
            *until = Some(now + Duration::from_secs(1));
            state.deliveries += 1;
            received.push(json!({
                "ackId": format!("{number}-{}", state.deliveries),
                "message": {
                    "data": STANDARD.encode(body),
                    "attributes": {"x-a": "1"},
                    "messageId": format!("{}", 1_000_000 + *number),
                    "publishTime": "2024-06-10T08:00:00.123Z",
                },
            }));
        }
    }
    received
}

async fn token(State(state): State<Shared>, body: String) -> Answer {
    let mut state = state.lock().unwrap();
    let field =
        |name: &str| body.split('&').find_map(|pair| pair.strip_prefix(name)).unwrap().to_owned();
    assert_eq!(field("grant_type="), "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer");
    state.asserted.push(field("assertion="));
    let token = format!("token-{}", state.asserted.len());
    state.token = Some(token.clone());
    Ok(Json(json!({"access_token": token, "expires_in": 3599, "token_type": "Bearer"})))
}

impl SourceServer for Service {
    const SOURCE: &'static str = "pubsub";

    async fn new(_alone: bool) -> Option<Self> {
        Some(Self::begin())
    }

    fn keys(&self) -> String {
        let address = self.address;
        format!(
            "  endpoint: '{address}'\n  subscription: projects/p/subscriptions/orders\n  ack_deadline_secs: 10\n"
        )
    }

    async fn send(&self, bodies: &[&[u8]]) {
        let mut state = self.state.lock().unwrap();
        for body in bodies {
            state.count += 1;
            let number = state.count;
            state.messages.push_back((number, body.to_vec(), None));
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the runtime of the service ends beside this one"
    )]
    fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.shutdown_background();
        }
        // What ends in the background lets the port go a moment later.
        while std::net::TcpStream::connect(self.address).is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the runtime of the service ends beside this one"
    )]
    fn start(&mut self) {
        let listener = loop {
            match std::net::TcpListener::bind(self.address) {
                Ok(listener) => break listener,
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        self.serve(listener);
    }
}

suite!(pulled_messages, Service);

/// Returns a new private key in PEM form, or `None` and records the skip without openssl.
fn made_key() -> Option<String> {
    let options = ["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"];
    match std::process::Command::new("openssl").args(options).output() {
        Ok(made) if made.status.success() => Some(String::from_utf8(made.stdout).unwrap()),
        _ => {
            noetl_test_services::missing("openssl", "apt-get install openssl");
            None
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_account_requests_a_new_token_when_its_token_is_revoked() {
    let service = Service::begin();
    service.state.lock().unwrap().token = Some("of nobody".to_owned());
    let Some(pem) = made_key() else { return };
    let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).unwrap();
    let key = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).unwrap();
    let address = service.address;
    // The document of a test has the fields that a credential would lay under it.
    let subscription = noetl_playbook::check_subscription(
        "apiVersion: noetl.io/v1\nkind: Subscription\nmetadata: {name: a, path: sub/a}\nspec:\n  \
         source: pubsub\n  mode: pull\n  dispatch: {playbook: p}\n",
    );
    let settings = json!({
        "endpoint": format!("http://{address}"), "subscription": "orders", "project": "p",
        "client_email": "noetl@p.iam.gserviceaccount.com", "private_key": pem,
        "private_key_id": "k1", "token_uri": format!("http://{address}/token"),
    });
    let Value::Object(settings) = settings else { unreachable!() };
    use noetl_sources::SourceFactory as _;
    let source =
        noetl_sources::Pubsub::default().open(&subscription.subscription.unwrap(), &settings).await;
    let source = source.unwrap();
    service.send(&[b"1"]).await;
    let deliveries = fetched(&source, 1).await;
    assert_eq!(
        service.state.lock().unwrap().asserted.len(),
        1,
        "a token serves for more than one call"
    );
    let asserted = service.state.lock().unwrap().asserted[0].clone();
    let [header, claims, signature]: [&str; 3] =
        asserted.split('.').collect::<Vec<_>>().try_into().unwrap();
    let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).unwrap();
    let claims_read: Value = serde_json::from_slice(&decoded(claims)).unwrap();
    assert_eq!(claims_read["iss"], "noetl@p.iam.gserviceaccount.com");
    assert_eq!(claims_read["scope"], "https://www.googleapis.com/auth/pubsub");
    assert_eq!(claims_read["aud"], format!("http://{address}/token"));
    let header_read: Value = serde_json::from_slice(&decoded(header)).unwrap();
    assert_eq!((&header_read["alg"], &header_read["kid"]), (&json!("RS256"), &json!("k1")));
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public());
    public.verify(format!("{header}.{claims}").as_bytes(), &decoded(signature)).unwrap();
    // The service takes the token back before its time.
    service.state.lock().unwrap().token = Some("of nobody".to_owned());
    assert!(deliveries[0].handle.ack().await.is_err());
    deliveries[0].handle.ack().await.unwrap();
    assert_eq!(service.state.lock().unwrap().asserted.len(), 2);
    assert!(service.state.lock().unwrap().messages.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_opening_pubsub_name_the_cause() {
    let service = Service::begin();
    let base = format!("  endpoint: '{}'\n  subscription: ", service.address);
    for (keys, part, is_final) in [
        (format!("{base}orders\n"), "`project`", true),
        (format!("{base}none\n  project: p\n"), "Resource not found", false),
        (format!("{base}orders\n  project: p\n  token: t\n"), "an emulator asks nobody", true),
        (
            "  endpoint: '127.0.0.1:1'\n  subscription: projects/p/subscriptions/s\n".to_owned(),
            "not reached",
            false,
        ),
    ] {
        let error = open("pubsub", &keys).await.err().unwrap();
        assert_eq!(matches!(error, SourceError::Settings(_)), is_final, "{keys}: {error}");
        assert!(error.to_string().contains(part), "{keys}: {error}");
    }
    open("pubsub", &format!("{base}unseen\n  project: p\n")).await.unwrap();
    service.state.lock().unwrap().token = Some("right".to_owned());
    let error =
        open("pubsub", &format!("{base}orders\n  project: p\n  token: wrong\n")).await.err();
    assert!(
        matches!(&error, Some(SourceError::Settings(text)) if text.contains("401")),
        "{error:?}"
    );
    open("pubsub", &format!("{base}orders\n  project: p\n  token: right\n")).await.unwrap();
}
