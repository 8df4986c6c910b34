//! Object keys of stored blobs.
//!
//! A bucket deletes an object by key, unconditionally, so the key itself contains the time of the
//! write. Every write of a blob creates a separate object, and deleting the objects that a process
//! has listed cannot delete one that was written since. Readers use the newest object. After a
//! write, the writer deletes the older objects it had listed before. Only garbage collection
//! deletes the newest object, and only if it has listed that object.

use std::hash::{BuildHasher, RandomState};

use noetl_model::Timestamp;
use noetl_store::Digest;
use object_store::path::Path;

/// Key of the object that one write of a blob created: `ab/<digest>/<micros>-<random>`. Keys of one
/// digest are ordered by write time, and at equal times by the random part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectKey {
    pub(crate) digest: Digest,
    pub(crate) written_at: Timestamp,
    random: u64,
}

impl ObjectKey {
    /// Creates a key for a write at `now`. The write time is later than that of `known`, even if
    /// the clock went back.
    pub(crate) fn after(digest: Digest, now: Timestamp, known: Option<&Self>) -> Self {
        let next = known.map_or(0, |known| known.written_at.as_micros().saturating_add(1));
        let written_at = Timestamp::from_micros(now.as_micros().max(next));
        // A new `RandomState` has new random keys, so two writers don't create the same key.
        Self { digest, written_at, random: RandomState::new().hash_one(digest) }
    }

    /// Parses an object's path. Returns `None` for an object that this module did not name.
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

/// Returns the prefix of all objects of a blob. The first two digits of the digest come first, so a
/// listing of all blobs splits into 256 parts.
pub(crate) fn directory(digest: Digest) -> Path {
    let name = digest.to_string();
    Path::from_iter([&name[..2], &name])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_keys_are_parsed_from_their_paths() {
        let digest = Digest::of_bytes(b"x");
        let first = ObjectKey::after(digest, Timestamp::from_micros(5), None);
        assert_eq!(ObjectKey::from_path(&first.path()), Some(first));
        for stranger in ["x", "ab/cd/ef", "ab/cd/1-2", "a/b/c/d"] {
            assert_eq!(ObjectKey::from_path(&Path::from(stranger)), None, "{stranger}");
        }
        let elsewhere = first.path().to_string().replacen(&digest.to_string()[..2], "zz", 1);
        assert_eq!(ObjectKey::from_path(&Path::from(elsewhere)), None);
    }

    #[test]
    fn a_later_write_sorts_later_with_any_clock() {
        let digest = Digest::of_bytes(b"x");
        let first = ObjectKey::after(digest, Timestamp::from_micros(5), None);
        for now in [-7, 0, 4, 5, 6, 1_000_000] {
            let next = ObjectKey::after(digest, Timestamp::from_micros(now), Some(&first));
            assert!(next > first && next.path() > first.path(), "{now}");
        }
    }
}
