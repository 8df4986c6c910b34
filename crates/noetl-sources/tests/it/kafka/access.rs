//! Tests of authentication and encryption.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use noetl_sources::SourceError;
use rcgen::{CertifiedKey, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::{Value, json};

use super::broker::Broker;
use super::{WAIT, keys};
use crate::suite::{fetched, open};

/// Creates a self-signed certificate.
fn certificate() -> CertifiedKey<KeyPair> {
    rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap()
}

/// Returns the TLS configuration of a broker. If `client` is set, clients must present it.
fn config(
    own: &CertifiedKey<KeyPair>,
    client: Option<&CertifiedKey<KeyPair>>,
) -> Arc<ServerConfig> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
    let config = match client {
        None => ServerConfig::builder().with_no_client_auth(),
        Some(client) => {
            let mut roots = RootCertStore::empty();
            roots.add(client.cert.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap();
            ServerConfig::builder().with_client_cert_verifier(verifier)
        }
    };
    Arc::new(config.with_single_cert(vec![own.cert.der().clone()], key).unwrap())
}

/// Returns a key of a document with a multi-line value.
fn block(key: &str, text: &str) -> String {
    format!("  {key}: |\n    {}\n", text.trim().replace('\n', "\n    "))
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_are_sent_over_an_encrypted_connection() {
    let made = certificate();
    let broker = Broker::begin(1, Some(config(&made, None)));
    broker.state().login = Some(("noetl".to_owned(), "right".to_owned()));
    broker.send(0, &[b"1"]);
    let ca = block("ca", &made.cert.pem());
    let with = |who: &str| keys(&broker, &format!("{ca}{who}"));
    let who = "  user: noetl\n  password: right\n";
    let source = open("kafka", &with(who)).await.unwrap();
    fetched(&source, 1).await[0].handle.ack().await.unwrap();
    for (keys, part) in [
        (
            with("  user: noetl\n  password: wrong\n"),
            "the broker rejected the login: Authentication failed",
        ),
        (with(&format!("{who}  mechanism: SCRAM-SHA-512\n")), "only: PLAIN"),
    ] {
        let error = open("kafka", &keys).await.err().unwrap();
        assert!(matches!(error, SourceError::Settings(_)), "{error}");
        assert!(
            error.to_string().contains(part) && !error.to_string().contains("wrong"),
            "{error}"
        );
    }
    // The broker's certificate is self-signed.
    let error = open("kafka", &keys(&broker, &format!("  tls: true\n{who}"))).await.err().unwrap();
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_presents_its_certificate() {
    let (broker, client, stranger) = (certificate(), certificate(), certificate());
    let ca = block("ca", &broker.cert.pem());
    let broker = Broker::begin(1, Some(config(&broker, Some(&client))));
    broker.send(0, &[b"1"]);
    let shown = |by: &CertifiedKey<KeyPair>, key: &CertifiedKey<KeyPair>| {
        let own = block("certificate", &by.cert.pem());
        let key = block("private_key", &key.signing_key.serialize_pem());
        keys(&broker, &format!("{ca}{own}{key}"))
    };
    let source = open("kafka", &shown(&client, &client)).await.unwrap();
    fetched(&source, 1).await[0].handle.ack().await.unwrap();
    let without = open("kafka", &keys(&broker, &ca)).await.err().unwrap();
    assert!(matches!(without, SourceError::Away(_)), "{without}");
    let other = open("kafka", &shown(&stranger, &stranger)).await.err().unwrap();
    assert!(matches!(other, SourceError::Away(_)), "{other}");
    // A certificate with the key of another is seen before anybody is asked.
    let mixed = open("kafka", &shown(&client, &stranger)).await.err().unwrap();
    assert!(
        matches!(&mixed, SourceError::Settings(text) if text.contains("`private_key`")),
        "{mixed}"
    );
}

/// Gives out tokens for so many seconds to a client that knows the secret; each has its number.
#[derive(Clone)]
struct Issuer {
    secs: u64,
    issued: Arc<AtomicUsize>,
    asked: Arc<Mutex<String>>,
}

impl Issuer {
    /// Starts the issuer. Returns it with the keys of a document that uses it.
    async fn begin(secs: u64) -> (Self, String) {
        let issuer = Self { secs, issued: Arc::default(), asked: Arc::default() };
        let routes = Router::new().route("/token", post(give)).with_state(issuer.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let keys = format!(
            "  mechanism: OAUTHBEARER\n  token_url: 'http://{address}/token'\n  client_id: noetl\n"
        );
        (issuer, keys)
    }

    fn issued(&self) -> usize {
        self.issued.load(Ordering::Relaxed)
    }
}

async fn give(State(issuer): State<Issuer>, asked: String) -> (StatusCode, Json<Value>) {
    let knows = asked.contains("client_secret=right");
    *issuer.asked.lock().unwrap() = asked;
    if !knows {
        return (StatusCode::UNAUTHORIZED, Json(json!({"error": "invalid_client"})));
    }
    issuer.issued.fetch_add(1, Ordering::Relaxed);
    (StatusCode::OK, Json(json!({"access_token": "good", "expires_in": issuer.secs})))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_requested_and_sent_to_the_broker() {
    let (issuer, who) = Issuer::begin(3600).await;
    let broker = Broker::begin(1, None);
    broker.state().bearer = Some("good".to_owned());
    broker.send(0, &[b"1"]);
    let right = format!("{who}  client_secret: right\n  scope: read\n");
    let source = open("kafka", &keys(&broker, &right)).await.unwrap();
    fetched(&source, 1).await[0].handle.ack().await.unwrap();
    assert_eq!(issuer.issued(), 1, "one for all connections");
    let asked = issuer.asked.lock().unwrap().clone();
    let form = "grant_type=client_credentials&client_id=noetl&client_secret=right&scope=read";
    assert_eq!(asked, form);
    // As it is, without anybody to ask.
    let settings = keys(&broker, "  mechanism: OAUTHBEARER\n  token: good\n");
    open("kafka", &settings).await.unwrap();

    let wrong = keys(&broker, &format!("{who}  client_secret: wrong\n"));
    let error = open("kafka", &wrong).await.err().unwrap();
    assert!(matches!(&error, SourceError::Settings(text) if text.contains("invalid_client")));
    let wrong = keys(&broker, "  mechanism: OAUTHBEARER\n  token: bad\n");
    let error = open("kafka", &wrong).await.err().unwrap();
    assert!(
        matches!(&error, SourceError::Settings(text) if text.contains("Authentication failed")),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_authenticates_again_before_its_session_expires() {
    // Shorter than the margin before a token's expiration, so each token is used once.
    let (issuer, who) = Issuer::begin(30).await;
    let broker = Broker::begin(1, None);
    {
        let mut state = broker.state();
        state.bearer = Some("good".to_owned());
        state.session_ms = 1;
    }
    let right = format!("{who}  client_secret: right\n");
    let source = open("kafka", &keys(&broker, &right)).await.unwrap();
    for body in [b"1", b"2", b"3"] {
        let (before, issued) = (broker.state().let_in, issuer.issued());
        broker.send(0, &[body]);
        fetched(&source, 1).await[0].handle.ack().await.unwrap();
        assert!(broker.state().let_in > before, "by a connection of its own");
        assert!(issuer.issued() > issued, "with a token of its own");
    }
    assert!(source.fetch(1, WAIT).await.unwrap().is_empty());
}
