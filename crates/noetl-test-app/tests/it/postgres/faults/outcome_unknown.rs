//! The connection breaks between a request and its response, which leaves the outcome of the commit
//! unknown.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use noetl_test_services::postgres::TestDatabase;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::postgres::faults::plane::Plane;

/// Text that identifies the writer's connections.
const MARK: &[u8] = b"-- Appends a batch";

/// Chunks that a connection sends before the proxy cuts it.
const PIECES: usize = 12;

/// A proxy that cuts the writer's connections.
struct Proxy {
    url: String,
    /// Whether the proxy cuts connections or only forwards.
    cuts: Arc<AtomicBool>,
    /// Number of requests cut off at once, and number of dropped responses.
    at_once: Arc<AtomicUsize>,
    answers: Arc<AtomicUsize>,
}

impl Proxy {
    async fn before(url: &str) -> Self {
        let (head, rest) = url.split_once('@').expect("a URL with a user");
        let (server, name) = rest.split_once('/').expect("a URL with a database");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let proxy = Self {
            url: format!("{head}@{address}/{name}"),
            cuts: Arc::default(),
            at_once: Arc::default(),
            answers: Arc::default(),
        };
        let (cuts, at_once, answers) =
            (proxy.cuts.clone(), proxy.at_once.clone(), proxy.answers.clone());
        let server = server.to_owned();
        tokio::spawn(async move {
            let mut number = 0;
            while let Ok((client, _)) = listener.accept().await {
                number += 1;
                let how = How {
                    cuts: cuts.clone(),
                    count: if number % 2 == 0 { at_once.clone() } else { answers.clone() },
                    waits_for_answer: number % 2 != 0,
                };
                let server = server.clone();
                tokio::spawn(async move {
                    let server = TcpStream::connect(server).await?;
                    hand_on(client, server, how).await
                });
            }
        });
        proxy
    }
}

struct How {
    cuts: Arc<AtomicBool>,
    count: Arc<AtomicUsize>,
    waits_for_answer: bool,
}

async fn hand_on(mut client: TcpStream, mut server: TcpStream, how: How) -> std::io::Result<()> {
    let (mut request_bytes, mut response_bytes) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let (mut is_writer, mut pieces, mut is_cut) = (false, 0, false);
    loop {
        tokio::select! {
            read = client.read(&mut request_bytes) => {
                let piece = &request_bytes[..read?];
                if piece.is_empty() {
                    return Ok(());
                }
                is_writer |= piece.windows(MARK.len()).any(|window| window == MARK);
                server.write_all(piece).await?;
                pieces += usize::from(is_writer && how.cuts.load(Ordering::Relaxed));
                is_cut |= pieces > PIECES;
                if is_cut && !how.waits_for_answer {
                    how.count.fetch_add(1, Ordering::Relaxed);
                    return Ok(());
                }
            }
            read = server.read(&mut response_bytes) => {
                let piece = &response_bytes[..read?];
                if is_cut {
                    how.count.fetch_add(1, Ordering::Relaxed);
                    return Ok(());
                }
                if piece.is_empty() {
                    return Ok(());
                }
                client.write_all(piece).await?;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn inputs_with_unknown_outcome_are_deduplicated_by_their_key() {
    let database = TestDatabase::new();
    let proxy = Proxy::before(&database.url()).await;
    let plane = Plane::open(&proxy.url).await;
    let load = plane.load(20).await;
    proxy.cuts.store(true, Ordering::Relaxed);
    while proxy.at_once.load(Ordering::Relaxed) < 10 || proxy.answers.load(Ordering::Relaxed) < 10 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    proxy.cuts.store(false, Ordering::Relaxed);
    let refused = load.refused.clone();
    load.ends_whole(&plane, &database).await;
    let refused = refused.lock().expect("no panic").clone();
    assert!(refused.is_empty(), "the journal finds out by itself: {refused:#?}");
    plane.close().await;
}
