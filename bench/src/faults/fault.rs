//! What is done to each, and how it is mended.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::Failure;
use crate::lines::Line;
use crate::process::Process;
use crate::site::Site;
use crate::wire::{self, Wire};

/// How long something is away before it is started again.
const AWAY: Duration = Duration::from_secs(2);

/// How long something stands still: past every lease it holds.
const STILL: Duration = Duration::from_secs(14);

/// How long a service stands still, or a line is cut: past what callers wait for an answer.
const SILENT: Duration = Duration::from_secs(8);

/// How long a line that comes and goes is away, and is there, and how often.
const FLAP: Duration = Duration::from_millis(250);
const FLAPS: usize = 16;

/// How long announcements are repeated, refused, or told by a wrong clock.
const DISTURBED: Duration = Duration::from_secs(8);

/// Bytes of a stream that is full at once.
const FULL: u64 = 1024;

/// How far a clock is wrong.
const SKEW: [&str; 2] = ["+5m", "-5m"];

/// A library that tells a process another time.
const FAKETIME: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
];

const STREAM: &str = "noetl_commands";

/// Something that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    KillServer,
    RestartServer,
    PauseServer,
    KillWorker(usize),
    PauseWorker(usize),
    StopWorker,
    KillNats,
    PauseNats,
    CrashDatabase,
    PauseDatabase,
    DeleteStream,
    RepeatAnnouncements,
    FillStream,
    CutServerFromDatabase,
    CutServerFromNats,
    CutWorkerFromServer,
    CutWorkerFromNats,
    CutWorkerFromAll,
    FlapLines,
    LosePackets,
    LoseServerHost,
    SkewClock,
}

/// What became of it.
pub(crate) enum Struck {
    Done,
    /// It cannot be done on this machine.
    Skipped(String),
}

impl Fault {
    pub(crate) const ALL: [Self; 24] = [
        Self::KillServer,
        Self::RestartServer,
        Self::PauseServer,
        Self::KillWorker(0),
        Self::KillWorker(1),
        Self::PauseWorker(0),
        Self::PauseWorker(1),
        Self::StopWorker,
        Self::KillNats,
        Self::PauseNats,
        Self::CrashDatabase,
        Self::PauseDatabase,
        Self::DeleteStream,
        Self::RepeatAnnouncements,
        Self::FillStream,
        Self::CutServerFromDatabase,
        Self::CutServerFromNats,
        Self::CutWorkerFromServer,
        Self::CutWorkerFromNats,
        Self::CutWorkerFromAll,
        Self::FlapLines,
        Self::LosePackets,
        Self::LoseServerHost,
        Self::SkewClock,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::KillServer => "a server is killed",
            Self::RestartServer => "servers are restarted in turn",
            Self::PauseServer => "a server stands still",
            Self::KillWorker(0) => "a worker by HTTP is killed",
            Self::KillWorker(_) => "a worker by NATS is killed",
            Self::PauseWorker(0) => "a worker by HTTP stands still",
            Self::PauseWorker(_) => "a worker by NATS stands still",
            Self::StopWorker => "a worker is told to stop",
            Self::KillNats => "NATS is killed",
            Self::PauseNats => "NATS stands still",
            Self::CrashDatabase => "the database crashes",
            Self::PauseDatabase => "the database stands still",
            Self::DeleteStream => "the stream of commands is deleted",
            Self::RepeatAnnouncements => "announcements are repeated, and late",
            Self::FillStream => "the stream of commands is full",
            Self::CutServerFromDatabase => "a server is cut off from the database",
            Self::CutServerFromNats => "a server is cut off from NATS",
            Self::CutWorkerFromServer => "a worker is cut off from its server",
            Self::CutWorkerFromNats => "a worker is cut off from NATS",
            Self::CutWorkerFromAll => "a worker is cut off from everything",
            Self::FlapLines => "lines come and go",
            Self::LosePackets => "packets are lost and late",
            Self::LoseServerHost => "a server's host is gone without a word",
            Self::SkewClock => "a server's clock is five minutes off",
        }
    }

    /// Breaks it, and mends it again.
    pub(crate) async fn strike(self, site: &Site) -> Result<Struck, Failure> {
        match self {
            Self::KillServer => killed(&site.servers[0].process).await?,
            Self::RestartServer => {
                for server in &site.servers {
                    server.process.stop().await?;
                    server.process.start_again().await?;
                }
            }
            Self::PauseServer => paused(&site.servers[1].process).await?,
            Self::KillWorker(number) => killed(&site.workers[number]).await?,
            Self::PauseWorker(number) => paused(&site.workers[number]).await?,
            Self::StopWorker => {
                site.workers[1].stop().await?;
                site.workers[1].start_again().await?;
            }
            Self::KillNats => {
                site.nats.run(&["signal"], &["KILL"]).await?;
                tokio::time::sleep(SILENT).await;
                site.nats.run(&["start"], &[]).await?;
            }
            Self::PauseNats => {
                site.nats.run(&["signal"], &["STOP"]).await?;
                tokio::time::sleep(SILENT).await;
                site.nats.run(&["signal"], &["CONT"]).await?;
            }
            Self::CrashDatabase => {
                site.database.run(&["stop"], &["immediate"]).await?;
                tokio::time::sleep(AWAY).await;
                site.database.run(&["start"], &[]).await?;
            }
            Self::PauseDatabase => {
                site.database.signal_database("STOP").await?;
                tokio::time::sleep(SILENT).await;
                site.database.signal_database("CONT").await?;
            }
            Self::DeleteStream => {
                let mut wire = Wire::connect(site.nats.address).await?;
                wire.ask(&format!("$JS.API.STREAM.DELETE.{STREAM}"), &json!({})).await?;
            }
            Self::RepeatAnnouncements => {
                let repeating = wire::repeat(site.nats.address).await?;
                tokio::time::sleep(DISTURBED).await;
                repeating.abort();
            }
            Self::FillStream => {
                let before = resized(site, json!(FULL), json!("new")).await?;
                tokio::time::sleep(DISTURBED).await;
                resized(site, before["max_bytes"].clone(), before["discard"].clone()).await?;
            }
            Self::CutServerFromDatabase => cut(site, &[Line::ServerToDatabase], SILENT).await?,
            Self::CutServerFromNats => cut(site, &[Line::ServerToNats], SILENT).await?,
            Self::CutWorkerFromServer => cut(site, &[Line::WorkerToServer], SILENT).await?,
            Self::CutWorkerFromNats => cut(site, &[Line::WorkerToNats], SILENT).await?,
            Self::CutWorkerFromAll => {
                cut(site, &[Line::WorkerToServer, Line::WorkerToNats], STILL).await?;
            }
            Self::FlapLines => {
                for _ in 0..FLAPS {
                    cut(site, &[Line::ServerToDatabase, Line::WorkerToServer], FLAP).await?;
                    tokio::time::sleep(FLAP).await;
                }
            }
            Self::LosePackets => return spoiled(site).await,
            Self::LoseServerHost => return lost(site).await,
            Self::SkewClock => return skewed(&site.servers[1].process).await,
        }
        Ok(Struck::Done)
    }
}

async fn killed(process: &Process) -> Result<(), Failure> {
    process.kill().await;
    tokio::time::sleep(AWAY).await;
    process.start_again().await
}

async fn paused(process: &Process) -> Result<(), Failure> {
    process.signal("STOP").await?;
    tokio::time::sleep(STILL).await;
    process.signal("CONT").await
}

async fn cut(site: &Site, lines: &[Line], lasts: Duration) -> Result<(), Failure> {
    for line in lines {
        site.lines.cut(*line, true).await?;
    }
    tokio::time::sleep(lasts).await;
    for line in lines {
        site.lines.cut(*line, false).await?;
    }
    Ok(())
}

/// Lets the lines of a server, of a worker and of the database lose packets.
async fn spoiled(site: &Site) -> Result<Struck, Failure> {
    let Some(hosts) = site.lines.hosts() else { return Ok(without_hosts()) };
    let spoiled = ["server-1", "worker-3", "postgres"];
    let can = hosts.spoil(&spoiled).await?;
    if can {
        tokio::time::sleep(STILL).await;
    }
    hosts.clear(&spoiled).await?;
    match can {
        true => Ok(Struck::Done),
        false => Ok(Struck::Skipped("this kernel has no netem".to_owned())),
    }
}

/// A server that ends while nothing of it is heard: nobody is told that its connections are over.
async fn lost(site: &Site) -> Result<Struck, Failure> {
    let Some(hosts) = site.lines.hosts() else { return Ok(without_hosts()) };
    let (server, process) = ("server-1", &site.servers[0].process);
    let others = hosts.others(server);
    hosts.cut(server, &others).await?;
    process.kill().await;
    // What a kernel says for a process that is gone is not heard either, however often it says so.
    tokio::time::sleep(STILL).await;
    hosts.mend(server, &others).await?;
    process.start_again().await?;
    Ok(Struck::Done)
}

fn without_hosts() -> Struck {
    Struck::Skipped("there are no network namespaces here".to_owned())
}

/// Lets the stream keep so many bytes and do this when it is full; returns how it was.
async fn resized(site: &Site, bytes: Value, discard: Value) -> Result<Value, Failure> {
    let mut wire = Wire::connect(site.nats.address).await?;
    let found = wire.ask(&format!("$JS.API.STREAM.INFO.{STREAM}"), &json!({})).await?;
    let mut config = found["config"].clone();
    config["max_bytes"] = bytes;
    config["discard"] = discard;
    wire.ask(&format!("$JS.API.STREAM.UPDATE.{STREAM}"), &config).await?;
    Ok(found["config"].clone())
}

/// Runs a server with a clock that is ahead, and behind.
async fn skewed(process: &Process) -> Result<Struck, Failure> {
    let Some(library) = FAKETIME.into_iter().find(|path| Path::new(path).exists()) else {
        return Ok(Struck::Skipped("libfaketime is not on this machine".to_owned()));
    };
    for skew in SKEW {
        process.stop().await?;
        // How long something takes is not told by that clock.
        let settings =
            [("LD_PRELOAD", library), ("FAKETIME", skew), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")];
        process.start_with(&settings).await?;
        tokio::time::sleep(DISTURBED).await;
    }
    process.stop().await?;
    process.start_again().await?;
    Ok(Struck::Done)
}
