//! Hash chain over the audit log of secret uses, which makes changes, removals, and reordering
//! detectable.
//!
//! Every use gets a link: its number, its time, the digest of the recorded use, and the digest of
//! these and of the previous link. A purged use leaves its link, so the link's time distinguishes a
//! purge from tampering. An attacker who can write to the database can also rebuild the whole
//! chain, but cannot make it end in a head that another party has stored.

use std::fmt;
use std::str::FromStr;

use noetl_model::{ExecutionId, Tenant, Timestamp};
use sha2::{Digest as _, Sha256};

use crate::{Digest, SecretUse};

/// Head of a chain. Its text form is the number, a colon, and the digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditHead {
    /// Number of the last link; 0 before the first.
    pub seq: i64,
    pub hash: Digest,
}

impl AuditHead {
    /// Head of an empty chain.
    pub const START: Self = Self { seq: 0, hash: Digest::from_bytes([0; 32]) };

    /// Returns the link of the next use and the resulting head.
    pub fn next(&self, tenant: &Tenant, used: &SecretUse) -> (AuditLink, Self) {
        let seq = self.seq + 1;
        let content = content(tenant, used);
        let hash = link(&self.hash, seq, used.at, &content);
        (AuditLink { seq, at: used.at, content, hash, used: None }, Self { seq, hash })
    }
}

impl fmt::Display for AuditHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.hash)
    }
}

/// A text that does not parse as the head of a chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not the head of a chain: write a number, a colon, and 64 hexadecimal digits")]
pub struct AuditHeadError(String);

impl FromStr for AuditHead {
    type Err = AuditHeadError;

    fn from_str(text: &str) -> Result<Self, AuditHeadError> {
        let read = || {
            let (seq, hash) = text.trim().split_once(':')?;
            let seq = seq.parse().ok().filter(|seq| *seq >= 0)?;
            Some(Self { seq, hash: hash.parse().ok()? })
        };
        read().ok_or_else(|| AuditHeadError(text.chars().take(100).collect()))
    }
}

/// A link of the chain, with its use if that still exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditLink {
    /// Number of the link, from 1.
    pub seq: i64,
    pub at: Timestamp,
    pub content: Digest,
    /// Digest of the previous link and of this one.
    pub hash: Digest,
    /// Use of the secret; `None` if the row no longer exists.
    pub used: Option<(Tenant, SecretUse)>,
}

impl AuditLink {
    /// Returns `true` if the link follows a link with this digest.
    pub fn follows(&self, before: &Digest) -> bool {
        link(before, self.seq, self.at, &self.content) == self.hash
    }

    /// Returns `true` if the use is unchanged since it was recorded, or `None` if the use is
    /// missing.
    pub fn is_as_recorded(&self) -> Option<bool> {
        let (tenant, used) = self.used.as_ref()?;
        Some(used.at == self.at && content(tenant, used) == self.content)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditChain {
    /// Head of the chain, as stored.
    pub head: AuditHead,
    /// Number of uses without a link: recorded before the chain existed, or by other programs.
    pub outside: u64,
}

fn link(before: &Digest, seq: i64, at: Timestamp, content: &Digest) -> Digest {
    let mut hash = Sha256::new_with_prefix(b"noetl audit link 1\n");
    hash.update(before.as_bytes());
    hash.update(seq.to_be_bytes());
    hash.update(at.as_micros().to_be_bytes());
    hash.update(content.as_bytes());
    Digest::from_bytes(hash.finalize().into())
}

/// Returns the digest of a use. Each part is preceded by its length, so that no two uses collide.
fn content(tenant: &Tenant, used: &SecretUse) -> Digest {
    let SecretUse {
        id,
        at,
        credential,
        operation,
        outcome,
        worker,
        execution,
        parent,
        server_region,
        broker_region,
        key_version,
        notes,
    } = used;
    let number = |id: &Option<ExecutionId>| id.map(|id| id.get().to_string());
    let (id, at) = (id.get().to_string(), at.as_micros().to_string());
    let (execution, parent) = (number(execution), number(parent));
    let parts: [Option<&str>; 13] = [
        Some(tenant.as_str()),
        Some(&id),
        Some(&at),
        Some(credential),
        Some(operation),
        Some(outcome),
        worker.as_deref(),
        execution.as_deref(),
        parent.as_deref(),
        server_region.as_deref(),
        broker_region.as_deref(),
        key_version.as_deref(),
        notes.as_deref(),
    ];
    let mut hash = Sha256::new_with_prefix(b"noetl audit use 1\n");
    for part in parts {
        match part {
            None => hash.update([0]),
            Some(text) => {
                hash.update([1]);
                hash.update((text.len() as u64).to_be_bytes());
                hash.update(text);
            }
        }
    }
    Digest::from_bytes(hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use noetl_model::AuditId;

    use super::*;

    fn used() -> SecretUse {
        SecretUse {
            id: AuditId::new(7),
            at: Timestamp::from_micros(1),
            credential: "pg".into(),
            operation: "resolve".into(),
            outcome: "ok".into(),
            worker: Some("w".into()),
            execution: Some(ExecutionId::new(5)),
            parent: None,
            server_region: None,
            broker_region: None,
            key_version: Some("v1".into()),
            notes: None,
        }
    }

    /// What is stored must read the same with every later version.
    #[test]
    fn the_digest_of_a_secret_use_is_stable() {
        let (link, head) = AuditHead::START.next(&Tenant::default(), &used());
        assert!(link.follows(&AuditHead::START.hash));
        assert_eq!(head.to_string().parse(), Ok(head));
        assert_eq!(
            head.to_string(),
            "1:5f844744972d65cc6b4935ccd4ef9d6bf74d7b6149badbc83f4f1d2bd7397b8e"
        );
    }

    #[test]
    fn whatever_is_changed_changes_the_digest() {
        let tenant = Tenant::default();
        let whole = content(&tenant, &used());
        let changed = [
            SecretUse { id: AuditId::new(8), ..used() },
            SecretUse { at: Timestamp::from_micros(2), ..used() },
            SecretUse { credential: "pg2".into(), ..used() },
            SecretUse { operation: "sealed".into(), ..used() },
            SecretUse { outcome: "denied".into(), ..used() },
            SecretUse { worker: None, ..used() },
            SecretUse { worker: Some(String::new()), ..used() },
            SecretUse { execution: None, ..used() },
            SecretUse { parent: Some(ExecutionId::new(5)), ..used() },
            SecretUse { server_region: Some("eu".into()), ..used() },
            SecretUse { broker_region: Some("eu".into()), ..used() },
            SecretUse { key_version: Some("v2".into()), ..used() },
            SecretUse { notes: Some(String::new()), ..used() },
            // What moves from one part to its neighbour.
            SecretUse { credential: "p".into(), operation: "gresolve".into(), ..used() },
        ];
        let mut seen = vec![whole, content(&Tenant::new("acme"), &used())];
        for used in changed {
            let digest = content(&tenant, &used);
            assert!(!seen.contains(&digest), "{used:?}");
            seen.push(digest);
        }
    }

    #[test]
    fn a_head_is_read_and_nonsense_is_not() {
        for text in ["", "1", ":", "-1:00", "1:zz", "x:00", &format!("1:{}", "0".repeat(63))] {
            assert!(text.parse::<AuditHead>().is_err(), "{text}");
        }
    }
}
