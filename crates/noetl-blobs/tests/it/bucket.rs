//! Content in a bucket of moto, a server that simulates S3, which the test starts.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use noetl_blobs::{BlobLocation, ObjectBlobs, open};
use noetl_store::{BlobError, BlobRef, Blobs, SystemClock, blobs_suite};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

const BUCKET: &str = "results";

blobs_suite!(together every_case_holds_in_a_bucket, Service::start);

#[tokio::test]
async fn an_unavailable_bucket_is_an_error_rather_than_missing_content() {
    // No server listens on the port of a closed socket.
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = closed.local_addr().expect("an address");
    drop(closed);
    let blobs = bucket(&format!("http://{address}"), "");
    let blob = BlobRef::from_bytes(b"content", "text/plain");
    let error = blobs.blob(&blob).await.expect_err("no answer");
    assert!(matches!(error, BlobError::Place(_)), "{error:?}");
}

/// A running server. It ends when its input is closed, which this does when it is dropped.
struct Service {
    url: String,
    places: AtomicUsize,
    _server: Child,
}

impl Service {
    async fn start() -> Option<Self> {
        if noetl_test_services::services_off("S3 server") {
            return None;
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/services/s3.sh");
        let mut server = Command::new(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the script that starts an S3 server");
        let output = server.stdout.take().expect("a pipe");
        let line = BufReader::new(output).lines().next_line().await.expect("output");
        let url = line.expect("the URL of an S3 server; why there is none is said above");
        // The client wants to know who does TLS, even where none is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let made = reqwest::Client::new().put(format!("{url}/{BUCKET}")).send().await;
        made.and_then(reqwest::Response::error_for_status).expect("a new bucket");
        Some(Self { url, places: AtomicUsize::new(0), _server: server })
    }

    /// Returns a store with an unused prefix.
    async fn fresh(&self) -> Arc<dyn Blobs> {
        let number = self.places.fetch_add(1, Ordering::SeqCst);
        Arc::new(bucket(&self.url, &format!("case/{number}")))
    }
}

fn bucket(url: &str, prefix: &str) -> ObjectBlobs {
    let place = BlobLocation::Bucket { name: BUCKET.into(), prefix: prefix.into() };
    let variables = [
        ("AWS_ENDPOINT_URL", url),
        ("AWS_REGION", "eu-central-1"),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_BUCKET", "another"),
        ("AWS_UNKNOWN", "is passed over"),
        ("HOME", "is passed over"),
    ];
    let variables = variables.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let opened = open(&place, variables, Arc::new(SystemClock));
    opened.expect("a place").expect("a bucket is a place of its own")
}
