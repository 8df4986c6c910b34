//! What is broken: two servers, three workers, a database, a bus, and the lines between them.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use noetl_api::Client;

use crate::Failure;
use crate::process::{Process, Recipe, Server};
use crate::relay::Relay;
use crate::services::Service;

/// Seconds after which a dead server is missed, and a dead worker.
const SERVER_LEASE: &str = "10";
const WORKER_LEASE: &str = "5";

/// A key for credentials, of which there are none: 32 zeros.
const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

/// Everything there is.
pub(crate) struct Site {
    pub(crate) database: Service,
    pub(crate) nats: Service,
    /// The first reaches the database and the bus by lines that can be cut.
    pub(crate) servers: Vec<Arc<Server>>,
    /// One by HTTP alone, one that listens on the bus, and one whose lines can be cut.
    pub(crate) workers: Vec<Process>,
    pub(crate) lines: Lines,
}

/// Lines that can be cut.
pub(crate) struct Lines {
    pub(crate) server_to_database: Relay,
    pub(crate) server_to_nats: Relay,
    pub(crate) worker_to_server: Relay,
    pub(crate) worker_to_nats: Relay,
}

impl Site {
    pub(crate) async fn start(
        program: &Path,
        services: &Path,
        directory: &Path,
    ) -> Result<Self, Failure> {
        let postgres = services.join("postgres.sh");
        let database = Service::start(&postgres, directory.join("postgres")).await?;
        let nats = Service::start(&services.join("nats.sh"), directory.join("nats")).await?;
        let ports = [free_port()?, free_port()?];
        let lines = Lines {
            server_to_database: Relay::to(here(database.port)).await?,
            server_to_nats: Relay::to(here(nats.port)).await?,
            worker_to_server: Relay::to(here(ports[1])).await?,
            worker_to_nats: Relay::to(here(nats.port)).await?,
        };
        let first =
            [database.by(lines.server_to_database.port), nats.by(lines.server_to_nats.port)];
        let second = [database.url.clone(), nats.url.clone()];
        let mut servers = Vec::new();
        for (port, [database, nats]) in ports.into_iter().zip([first, second]) {
            let recipe = server(program, port, &database, &nats);
            let client = Client::new(&format!("http://127.0.0.1:{port}"))?;
            servers.push(Arc::new(Server::new(Process::start(recipe).await?, client)));
        }
        let by_relay = nats.by(lines.worker_to_nats.port);
        let plan = [
            ("by-http", ports[0], None),
            ("by-nats", ports[0], Some(nats.url.as_str())),
            ("by-lines", lines.worker_to_server.port, Some(by_relay.as_str())),
        ];
        let mut workers = Vec::new();
        for (name, port, nats) in plan {
            workers.push(Process::start(worker(program, name, port, nats)).await?);
        }
        Ok(Self { database, nats, servers, workers, lines })
    }

    pub(crate) async fn end(&self) {
        for process in self.workers.iter().chain(self.servers.iter().map(|it| &it.process)) {
            process.kill().await;
        }
    }
}

fn server(program: &Path, port: u16, database: &str, nats: &str) -> Recipe {
    let arguments = ["server", "--port", &port.to_string(), "--database-url", database];
    let settings = [
        ("NOETL_NATS_URL", nats),
        ("NOETL_ENCRYPTION_KEY", KEY),
        ("NOETL_LEASE_SECS", SERVER_LEASE),
        ("NOETL_WORKER_LEASE_SECS", WORKER_LEASE),
        ("POSTGRES_ACQUIRE_TIMEOUT", "5"),
        ("RUST_LOG", "error"),
    ];
    recipe(program, &arguments, &settings, "noetl listens on ")
}

fn worker(program: &Path, name: &str, port: u16, nats: Option<&str>) -> Recipe {
    let server = format!("http://127.0.0.1:{port}");
    let arguments = ["worker", "--server", &server, "--slots", "8"];
    let settings =
        [("NOETL_WORKER_LABELS", format!("way={name}")), ("RUST_LOG", "error".to_owned())];
    let mut settings: Vec<(&str, &str)> =
        settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    // An empty one is none, whatever the environment of this process says.
    settings.push(("NOETL_NATS_URL", nats.unwrap_or_default()));
    recipe(program, &arguments, &settings, "noetl worker ")
}

fn recipe(
    program: &Path,
    arguments: &[&str],
    settings: &[(&str, &str)],
    sign: &'static str,
) -> Recipe {
    Recipe {
        program: program.to_owned(),
        arguments: arguments.iter().map(|it| (*it).to_owned()).collect(),
        settings: settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        sign,
    }
}

fn here(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn free_port() -> Result<u16, Failure> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    Ok(listener.local_addr()?.port())
}
