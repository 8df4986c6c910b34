//! Where the copies of content are.
//!
//! A bucket removes an object by its key and asks no questions, so the key itself has to say when
//! the content was written: every writing is an object of its own, and removing what was seen
//! cannot meet what was written since. Readers take the newest; a writer removes the older ones it
//! knew of when its own is there. The newest is removed by nobody but a collection that saw it.

use std::hash::{BuildHasher, RandomState};

use noetl_model::Timestamp;
use noetl_store::Digest;
use object_store::path::Path;

/// One writing of content: `ab/<digest>/<micros>-<random>`. They are ordered by time, those of one
/// time by chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Generation {
    pub(crate) digest: Digest,
    pub(crate) written_at: Timestamp,
    random: u64,
}

impl Generation {
    /// A writing now that comes after those that are known, whatever the clock says.
    pub(crate) fn after(digest: Digest, now: Timestamp, known: Option<&Self>) -> Self {
        let next = known.map_or(0, |known| known.written_at.as_micros().saturating_add(1));
        let written_at = Timestamp::from_micros(now.as_micros().max(next));
        // A fresh state has fresh keys, so two writers never make the same name.
        Self { digest, written_at, random: RandomState::new().hash_one(digest) }
    }

    /// From an object's key; nothing for an object of somebody else.
    pub(crate) fn from_path(path: &Path) -> Option<Self> {
        let mut parts = path.parts();
        let (_, digest, name) = (parts.next()?, parts.next()?, parts.next()?);
        let (micros, random) = name.as_ref().split_once('-')?;
        let generation = Self {
            digest: digest.as_ref().parse().ok()?,
            written_at: Timestamp::from_micros(micros.parse().ok()?),
            random: u64::from_str_radix(random, 16).ok()?,
        };
        (generation.path() == *path).then_some(generation)
    }

    pub(crate) fn path(&self) -> Path {
        let micros = self.written_at.as_micros();
        directory(self.digest).join(format!("{micros:019}-{:016x}", self.random))
    }
}

/// What all writings of content are under. The first two digits come first, so that a list of all
/// content falls into 256 parts.
pub(crate) fn directory(digest: Digest) -> Path {
    let name = digest.to_string();
    Path::from_iter([&name[..2], &name])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_says_everything() {
        let digest = Digest::of(b"x");
        let first = Generation::after(digest, Timestamp::from_micros(5), None);
        assert_eq!(Generation::from_path(&first.path()), Some(first));
        for stranger in ["x", "ab/cd/ef", "ab/cd/1-2", "a/b/c/d"] {
            assert_eq!(Generation::from_path(&Path::from(stranger)), None, "{stranger}");
        }
        let elsewhere = first.path().to_string().replacen(&digest.to_string()[..2], "zz", 1);
        assert_eq!(Generation::from_path(&Path::from(elsewhere)), None);
    }

    #[test]
    fn a_later_writing_comes_later_by_any_clock() {
        let digest = Digest::of(b"x");
        let first = Generation::after(digest, Timestamp::from_micros(5), None);
        for now in [-7, 0, 4, 5, 6, 1_000_000] {
            let next = Generation::after(digest, Timestamp::from_micros(now), Some(&first));
            assert!(next > first && next.path() > first.path(), "{now}");
        }
    }
}
