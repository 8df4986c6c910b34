//! Connections over TLS, with and without certificates of clients.

use noetl_server::{App, Options, Tls, TlsError};
use noetl_test_app::TestApp;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// An authority, and certificates of it: texts in PEM form.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for a name, and its key.
    fn issue(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    }
}

/// Requests the health from a port.
async fn asked(port: u16, authority: &Authority, own: Option<&(String, String)>) -> Option<u16> {
    let trusted = reqwest::Certificate::from_pem(authority.pem().as_bytes()).expect("PEM");
    let mut client = reqwest::Client::builder().no_proxy().tls_certs_only([trusted]);
    if let Some((certificate, key)) = own {
        let both = format!("{certificate}{key}");
        let identity = reqwest::Identity::from_pem(both.as_bytes()).expect("an identity");
        client = client.identity(identity);
    }
    let client = client.build().expect("a client");
    let answer = client.get(format!("https://localhost:{port}/health")).send().await.ok()?;
    Some(answer.status().as_u16())
}

/// Serves TLS until the sender is dropped, and returns the port.
async fn served(app: &TestApp, tls: Tls) -> (u16, oneshot::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let edge = App::new(app.control.clone(), Options::default());
    let (stop, stopped) = oneshot::channel();
    tokio::spawn(async move {
        let stopped = async { drop(stopped.await) };
        noetl_server::serve(listener, edge, Some(tls), stopped).await.expect("served");
    });
    (port, stop)
}

#[tokio::test]
async fn requests_succeed_over_tls() {
    let app = TestApp::start(0).await;
    let (authority, stranger) = (Authority::new(), Authority::new());
    let (certificate, key) = authority.issue("localhost");
    let tls = Tls::from_pem(certificate.as_bytes(), key.as_bytes(), None).expect("TLS");
    let (port, stop) = served(&app, tls).await;
    assert_eq!(asked(port, &authority, None).await, Some(200));
    assert_eq!(asked(port, &stranger, None).await, None, "a client that trusts another");
    let plain = reqwest::Client::builder().no_proxy().build().expect("a client");
    assert!(plain.get(format!("http://localhost:{port}/health")).send().await.is_err());
    drop(stop);
    app.close().await;
}

#[tokio::test]
async fn clients_without_a_required_certificate_are_refused() {
    let app = TestApp::start(0).await;
    let (authority, clients) = (Authority::new(), Authority::new());
    let (certificate, key) = authority.issue("localhost");
    let ca = clients.pem();
    let tls = Tls::from_pem(certificate.as_bytes(), key.as_bytes(), Some(ca.as_bytes()));
    let (port, stop) = served(&app, tls.expect("TLS")).await;
    assert_eq!(asked(port, &authority, None).await, None, "no certificate");
    let foreign = Authority::new().issue("worker");
    assert_eq!(asked(port, &authority, Some(&foreign)).await, None, "a stranger's");
    assert_eq!(asked(port, &authority, Some(&clients.issue("worker"))).await, Some(200));
    drop(stop);
    app.close().await;
}

#[test]
fn invalid_tls_settings_are_reported() {
    let authority = Authority::new();
    let ((certificate, key), (_, other)) = (authority.issue("a"), authority.issue("b"));
    let made = |certificate: &str, key: &str, ca: Option<&str>| {
        Tls::from_pem(certificate.as_bytes(), key.as_bytes(), ca.map(str::as_bytes)).err()
    };
    assert_eq!(made("nothing", &key, None), Some(TlsError::Certificate));
    assert_eq!(made(&certificate, "nothing", None), Some(TlsError::Key));
    assert_eq!(made(&certificate, &other, None), Some(TlsError::Mismatch));
    assert_eq!(made(&certificate, &key, Some("")), Some(TlsError::ClientCa));
    assert_eq!(made(&certificate, &key, Some(&authority.pem())), None);
}
