//! A server that echoes requests, and a plain HTTP client.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use noetl_api::Client;
use serde_json::Value;

/// Token of a system pool.
pub(super) const INTERNAL_TOKEN: &str = "the token of a system pool";

/// An HTTP server that responds with the received request in its body and in a header. Requests to
/// `/fail` get a 500.
pub(super) struct Echo {
    url: String,
    received: Arc<Mutex<Vec<u8>>>,
}

impl Echo {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let received = Arc::new(Mutex::new(Vec::new()));
        let hearing = Arc::clone(&received);
        // Ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let hearing = Arc::clone(&hearing);
                std::thread::spawn(move || answer(stream, &hearing));
            }
        });
        Self { url, received }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the bytes of all requests.
    pub(super) fn received(&self) -> Vec<u8> {
        self.received.lock().unwrap().clone()
    }
}

fn answer(mut stream: TcpStream, hearing: &Mutex<Vec<u8>>) {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    let length = loop {
        let Ok(count) = stream.read(&mut buffer) else { return };
        if count == 0 {
            return;
        }
        request.extend_from_slice(&buffer[..count]);
        let Some(end) = request.windows(4).position(|window| window == b"\r\n\r\n") else {
            continue;
        };
        let head = String::from_utf8_lossy(&request[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
        break end + 4 + length;
    };
    while request.len() < length {
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => request.extend_from_slice(&buffer[..count]),
            _ => break,
        }
    }
    hearing.lock().unwrap().extend_from_slice(&request);
    let text = String::from_utf8_lossy(&request);
    let status = if text.contains(" /fail") { "500 Broken" } else { "200 OK" };
    let shown = text.lines().find(|line| line.to_ascii_lowercase().starts_with("x-canary:"));
    let shown =
        shown.map_or("none", |line| line.split_once(':').map_or("", |(_, value)| value.trim()));
    let body = serde_json::json!({ "echo": text }).to_string();
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nx-canary: {shown}\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    );
}

/// Sends a request on a new connection and reads until the server closes it. HTTP/1.0 avoids
/// chunked responses.
pub(super) async fn ask(
    client: &Client,
    method: &str,
    path: &str,
    body: Option<Value>,
) -> (u16, Vec<u8>) {
    let base = client.base();
    let address = format!("{}:{}", base.host_str().unwrap(), base.port().unwrap());
    let (method, path) = (method.to_owned(), path.to_owned());
    let asking = move || {
        let body = body.map_or(String::new(), |body| body.to_string());
        // Internal routes require the token of a system pool.
        let token = match path.starts_with("/api/internal/") {
            true => format!("authorization: Bearer {INTERNAL_TOKEN}\r\n"),
            false => String::new(),
        };
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.0\r\nhost: {address}\r\n\
             {token}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let status = String::from_utf8_lossy(&answer[..answer.len().min(16)]).into_owned();
        let status = status.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.unwrap(), answer)
    };
    tokio::task::spawn_blocking(asking).await.unwrap()
}
