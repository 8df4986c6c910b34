//! Runs processes of the control plane, which die, restart, and are replaced.

use std::sync::Arc;
use std::time::Duration;

use noetl_bus::EventStream;
use noetl_control::{ControlPlane, Options};
use noetl_local::Worker;
use noetl_model::Clock;
use noetl_publishing::{PublisherHandle, PublisherOptions};
use noetl_store::Store;
use noetl_test_app::FaultyStore;
use noetl_tools::ToolRegistry;
use tokio::task::JoinHandle;

use super::connection::Connection;
use super::fault::Fault;
use super::scene::Scene;
use super::tool::Scripted;

/// Lease of a process: others recover its commands after this time.
const LEASE: Duration = Duration::from_secs(30);
/// Lease of a remote worker.
const WORKER_LEASE: Duration = Duration::from_secs(20);

/// Most time that a process gets to drain.
const CLOSE_MAX: Duration = Duration::from_secs(60);

/// Runs the processes of one seat, one after another, until the simulation ends.
pub(crate) async fn run(scene: Arc<Scene>, seat: usize) {
    let who = format!("p{seat}");
    loop {
        let life = scene.begin_life(seat);
        scene.note(&who, &format!("process {life} starts"));
        let opened = tokio::select! {
            biased;
            () = scene.dead(life) => None,
            opened = Process::open(&scene, seat, life, &who) => opened,
        };
        match opened {
            Some(process) => process.serve(&scene, seat, &who).await,
            None => {
                scene.end_life(life);
                tokio::time::sleep(scene.millis(50, 3_000)).await;
            }
        }
    }
}

struct Process {
    life: u64,
    control: Arc<ControlPlane>,
    worker: JoinHandle<()>,
    publishing: PublisherHandle,
}

impl Process {
    async fn open(scene: &Arc<Scene>, seat: usize, life: u64, who: &str) -> Option<Self> {
        let connection = Arc::new(Connection::new(scene, life, who));
        let store = FaultyStore::with_interceptor(scene.store.clone(), connection);
        if scene.plan.shared {
            store.set_shared();
        }
        let store: Arc<dyn Store> = Arc::new(store);
        let clock: Arc<dyn Clock> = scene.lock().lives.get(&life)?.clock.clone();
        let options = Options {
            slots: scene.plan.slots,
            cache_bytes: scene.plan.cache_bytes,
            lease: LEASE,
            worker_lease: WORKER_LEASE,
            schedules: false,
            ..Options::default()
        };
        let control = match ControlPlane::open(options, store.clone(), clock.clone()).await {
            Ok(control) => Arc::new(control),
            Err(error) => {
                scene.note(who, &format!("process {life} fails to start: {error}"));
                return None;
            }
        };
        let tools =
            ToolRegistry::default().with(Scripted { scene: scene.clone(), life: Some(life) });
        let worker =
            tokio::spawn(Worker::new(control.journal.local.clone(), tools).run(Duration::ZERO));
        let bus: Arc<dyn EventStream> = scene.stream.clone();
        let options = PublisherOptions {
            backfill: true,
            batch: 16,
            poll: Duration::from_secs(2),
            ..PublisherOptions::default()
        };
        let publishing = PublisherHandle::tail(
            &options,
            vec![("database".to_owned(), store)],
            &bus,
            &control.journal.watch.commits(),
            &clock,
            &control.journal.metrics,
        );
        let mut changing = scene.lock();
        let alive = changing.lives.get_mut(&life).filter(|life| !life.is_over)?;
        alive.control = Some(control.clone());
        drop(changing);
        scene.note(who, &format!("process {life} serves, seat {seat}"));
        Some(Self { life, control, worker, publishing })
    }

    /// Serves until the process dies or is replaced.
    async fn serve(self, scene: &Arc<Scene>, seat: usize, who: &str) {
        let life = self.life;
        loop {
            tokio::select! {
                biased;
                () = scene.dead(life) => {
                    // Its tasks never resume: their connection to the database is closed.
                    self.worker.abort();
                    scene.note(who, &format!("process {life} is gone"));
                    tokio::time::sleep(scene.millis(50, 20_000)).await;
                    return;
                }
                () = tokio::time::sleep(Duration::from_secs(5)) => {}
            }
            match scene.fault_in(who, &[Fault::Replaced, Fault::ClockJump], 12) {
                Some(Fault::Replaced) => break,
                Some(_) => jump(scene, life, who),
                None => {}
            }
        }
        scene.note(who, &format!("process {life} drains, seat {seat}"));
        if let Some(life) = scene.lock().lives.get_mut(&life) {
            life.control = None;
        }
        let scene_of = scene.clone();
        let closes = tokio::spawn(async move {
            let closed = async {
                self.control.drain();
                let _ = self.worker.await;
                self.publishing.close().await;
                self.control.close().await;
            };
            tokio::select! {
                biased;
                () = scene_of.dead(life) => {}
                // A process that does not drain in time is killed.
                _ = tokio::time::timeout(CLOSE_MAX, closed) => scene_of.end_life(life),
            }
        });
        // On a shared database the next process starts while this one drains.
        if !scene.plan.shared {
            let _ = closes.await;
        }
    }
}

fn jump(scene: &Scene, life: u64, who: &str) {
    let millis = i64::try_from(scene.between(0, 600_000)).unwrap_or_default() - 300_000;
    scene.note(who, &format!("  the clock jumps by {millis} ms"));
    if let Some(life) = scene.lock().lives.get(&life) {
        life.clock.jump(millis * 1000);
    }
}
