//! What is broken: two servers, three workers, a database, a bus, and the lines between them.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use noetl_api::{Access, Client};
use tokio::process::Command;

use crate::hosts::{Hosts, Place};
use crate::lines::{Line, Lines};
use crate::process::{Process, Recipe, Server};
use crate::service::Service;
use crate::{Failure, Ground};

/// Seconds after which a dead server is missed, and a dead worker.
const SERVER_LEASE: &str = "10";
const WORKER_LEASE: &str = "5";

/// A key for credentials, of which there are none: 32 zeros.
const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

/// What a server says when it can be called.
const LISTENS: &str = "noetl listens on ";

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

impl Site {
    pub(crate) async fn start(ground: &Ground) -> Result<Self, Failure> {
        let hosts = ground.hosts.then(|| Hosts::made(ground)).transpose()?;
        let place =
            |host: &str| hosts.as_ref().map_or_else(|| Ok(Place::here()), |it| it.place(host));
        let database = Service::start(ground, "postgres", place("postgres")?).await?;
        let nats = Service::start(ground, "nats", place("nats")?).await?;
        let at_servers = [place("server-1")?, place("server-2")?];
        let at_workers = [place("worker-1")?, place("worker-2")?, place("worker-3")?];
        let addresses = [
            SocketAddr::new(at_servers[0].address, free_port()?),
            SocketAddr::new(at_servers[1].address, free_port()?),
        ];
        let lines = Lines::new(hosts, database.address, nats.address, addresses[1]).await?;
        let program = &ground.noetl;
        let caller = Access {
            token: Some(token(program, &database.url, "admin").await?),
            ..Access::default()
        };
        let first = [
            database.by(lines.by(Line::ServerToDatabase, database.address)),
            nats.by(lines.by(Line::ServerToNats, nats.address)),
        ];
        let second = [database.url.clone(), nats.url.clone()];
        let mut servers = Vec::new();
        for ((place, address), [database, nats]) in
            at_servers.iter().zip(addresses).zip([first, second])
        {
            let recipe = server(program, place, address, &database, &nats);
            servers.push(Arc::new(started(recipe, address, &caller).await?));
        }
        let by_line = nats.by(lines.by(Line::WorkerToNats, nats.address));
        let plan = [
            ("by-http", addresses[0], None),
            ("by-nats", addresses[0], Some(nats.url.as_str())),
            ("by-lines", lines.by(Line::WorkerToServer, addresses[1]), Some(by_line.as_str())),
        ];
        let token = token(program, &database.url, "worker").await?;
        let mut workers = Vec::new();
        for (place, (name, server, nats)) in at_workers.iter().zip(plan) {
            let arguments = ["worker", "--server", &format!("http://{server}"), "--slots", "8"];
            let settings = [
                ("NOETL_TOKEN", token.as_str()),
                ("NOETL_WORKER_LABELS", &format!("way={name}")),
                // An empty one is none, whatever the environment of this process says.
                ("NOETL_NATS_URL", nats.unwrap_or_default()),
                ("RUST_LOG", "error"),
            ];
            let recipe = recipe(program, place, &arguments, &settings, "noetl worker ");
            workers.push(Process::start(recipe).await?);
        }
        Ok(Self { database, nats, servers, workers, lines })
    }

    pub(crate) async fn end(&self) {
        for process in self.workers.iter().chain(self.servers.iter().map(|it| &it.process)) {
            process.kill().await;
        }
    }
}

/// A server with a worker of its own, and nothing but a database.
pub(crate) async fn server_with_worker(ground: &Ground, database: &str) -> Result<Server, Failure> {
    let place = Place::here();
    let address = SocketAddr::new(place.address, free_port()?);
    let port = address.port().to_string();
    let arguments =
        ["dev", "--port", &port, "--auth", "open", "--slots", "8", "--database-url", database];
    let settings = [
        ("NOETL_LEASE_SECS", SERVER_LEASE),
        ("POSTGRES_ACQUIRE_TIMEOUT", "5"),
        ("RUST_LOG", "error"),
    ];
    let recipe = recipe(&ground.noetl, &place, &arguments, &settings, LISTENS);
    started(recipe, address, &Access::default()).await
}

async fn started(recipe: Recipe, at: SocketAddr, access: &Access) -> Result<Server, Failure> {
    let client = Client::with(&format!("http://{at}"), access)?;
    Ok(Server::new(Process::start(recipe).await?, client))
}

fn server(program: &Path, place: &Place, at: SocketAddr, database: &str, nats: &str) -> Recipe {
    let (host, port) = (at.ip().to_string(), at.port().to_string());
    let arguments = ["server", "--host", &host, "--port", &port, "--database-url", database];
    let settings = [
        // Whoever can be called from another host asks who calls.
        ("NOETL_AUTH", "token"),
        ("NOETL_NATS_URL", nats),
        ("NOETL_ENCRYPTION_KEY", KEY),
        ("NOETL_LEASE_SECS", SERVER_LEASE),
        ("NOETL_WORKER_LEASE_SECS", WORKER_LEASE),
        ("POSTGRES_ACQUIRE_TIMEOUT", "5"),
        ("RUST_LOG", "error"),
    ];
    recipe(program, place, &arguments, &settings, LISTENS)
}

/// A token of this role, made on the database itself.
async fn token(program: &Path, database: &str, role: &str) -> Result<String, Failure> {
    let arguments = ["token", "create", "--name", role, "--role", role, "--database-url", database];
    let made = Command::new(program).args(arguments).output().await?;
    if !made.status.success() {
        return Err(String::from_utf8_lossy(&made.stderr).into_owned().into());
    }
    Ok(String::from_utf8(made.stdout)?.trim().to_owned())
}

fn recipe(
    program: &Path,
    place: &Place,
    arguments: &[&str],
    settings: &[(&str, &str)],
    sign: &'static str,
) -> Recipe {
    Recipe {
        words: place.words(&program.to_string_lossy(), arguments),
        settings: settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
        sign,
    }
}

fn free_port() -> Result<u16, Failure> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    Ok(listener.local_addr()?.port())
}
