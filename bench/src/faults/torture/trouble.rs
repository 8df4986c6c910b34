//! Everything that can be broken, broken at random, often two things at once.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::Failure;
use crate::chance::Chance;
use crate::fault::{Fault, Struck};
use crate::site::Site;

/// What can be broken while something else is: the lines, and what is on the bus.
const BESIDE: [Fault; 6] = [
    Fault::CutServerFromDatabase,
    Fault::CutServerFromNats,
    Fault::CutWorkerFromServer,
    Fault::CutWorkerFromNats,
    Fault::DeleteStream,
    Fault::RepeatAnnouncements,
];

/// How long a disk is full.
const FULL: Duration = Duration::from_secs(6);

/// The most that is written to fill a disk: what is larger is not one made for this.
const BALLAST_MAX: u64 = 16 << 30;

/// How often it is told how far it is.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// Breaks things until the time is over; how often what.
pub(crate) async fn until(
    end: Instant,
    site: &Site,
    disk: Option<&Path>,
    chance: &mut Chance,
) -> Result<BTreeMap<&'static str, usize>, Failure> {
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut skipped = BTreeSet::new();
    let mut tell_at = Instant::now() + TELL_EVERY;
    while Instant::now() < end {
        if Instant::now() >= tell_at {
            let left = end.saturating_duration_since(Instant::now()).as_secs().div_ceil(60);
            let struck: usize = counts.values().sum();
            crate::say(&format!("  {struck} faults so far, {left} minutes left"));
            tell_at += TELL_EVERY;
        }
        tokio::time::sleep(Duration::from_millis(chance.below(4000))).await;
        let place = usize::try_from(chance.below(Fault::ALL.len() as u64 + 1)).unwrap_or(0);
        let beside = chance.below(3) == 0;
        let second = BESIDE[usize::try_from(chance.below(6)).unwrap_or(0)];
        let (first, other) = tokio::join!(
            async {
                match (Fault::ALL.get(place), disk) {
                    (Some(fault), _) => Ok((fault.name(), fault.strike(site).await?)),
                    (None, Some(disk)) => Ok(("the disk is full", fill(site, disk).await?)),
                    (None, None) => {
                        let why = "the database is on no disk made for this".to_owned();
                        Ok(("the disk is full", Struck::Skipped(why)))
                    }
                }
            },
            async {
                match beside && Fault::ALL.get(place) != Some(&second) {
                    // What it needs may be broken already; then there is nothing to break.
                    true => second.strike(site).await.ok().map(|struck| (second.name(), struck)),
                    false => None,
                }
            }
        );
        let first: Result<_, Failure> = first;
        for (name, struck) in std::iter::once(first?).chain(other) {
            match struck {
                Struck::Done => *counts.entry(name).or_default() += 1,
                Struck::Skipped(why) if skipped.insert(name) => {
                    crate::say(&format!("  {name}: skipped, {why}"));
                }
                Struck::Skipped(_) => {}
            }
        }
    }
    Ok(counts)
}

/// Fills the disk of the database, and empties it again.
async fn fill(site: &Site, disk: &Path) -> Result<Struck, Failure> {
    let ballast = disk.join("ballast");
    let written = tokio::task::spawn_blocking({
        let ballast = ballast.clone();
        move || write_until_full(ballast)
    });
    let is_full = written.await??;
    if is_full {
        tokio::time::sleep(FULL).await;
    }
    std::fs::remove_file(&ballast)?;
    // A database whose log does not fit stops itself.
    site.database.run(&["start"], &[]).await?;
    match is_full {
        true => Ok(Struck::Done),
        false => Ok(Struck::Skipped("the disk is larger than one made for this".to_owned())),
    }
}

fn write_until_full(path: PathBuf) -> std::io::Result<bool> {
    let mut file = std::fs::File::create(path)?;
    let bytes = vec![0_u8; 1 << 20];
    let mut written = 0;
    while written < BALLAST_MAX {
        match file.write_all(&bytes) {
            Ok(()) => written += 1 << 20,
            Err(error) if error.kind() == std::io::ErrorKind::StorageFull => return Ok(true),
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}
