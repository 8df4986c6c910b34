//! Verifies the hash chain of the audit.

use noetl_model::Timestamp;
use noetl_store::{AuditHead, AuditLink, SecretAuditStore, StoreError};

/// Links read at a time.
const PAGE: usize = 1000;

/// Problems described in a report. Further ones are only counted.
const DESCRIBED_MAX: usize = 100;

/// Result of verifying the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditCheck {
    /// Last verified link of the chain. Store it outside the database: a later verification against
    /// it detects truncation.
    pub head: AuditHead,
    /// Number of uses that match their link.
    pub uses: u64,
    /// Number of missing uses that a purge may have deleted, because they are older than the
    /// retention period.
    pub purged: u64,
    /// Number of uses without a link. They cannot be verified.
    pub outside: u64,
    /// Problems in chain order.
    pub problems: Vec<String>,
    /// Number of problems beyond those described.
    pub more: u64,
}

impl AuditCheck {
    /// Returns `true` if no problem was found.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    fn wrong(&mut self, problem: String) {
        match self.problems.len() < DESCRIBED_MAX {
            true => self.problems.push(problem),
            false => self.more += 1,
        }
    }
}

/// Verifies the audit of all tenants from the first link. A missing use counts as purged if it
/// happened before `purged_before`. The head `kept`, if given, has to be part of the chain.
pub async fn verify_audit(
    store: &(impl SecretAuditStore + ?Sized),
    kept: Option<AuditHead>,
    purged_before: Timestamp,
) -> Result<AuditCheck, StoreError> {
    // The head first, so uses recorded during the verification are not reported as missing.
    let chain = store.audit_chain().await?;
    let (outside, problems) = (chain.outside, Vec::new());
    let head = AuditHead::START;
    let mut check = AuditCheck { head, uses: 0, purged: 0, outside, problems, more: 0 };
    let mut kept_is_met = kept.is_none_or(|kept| kept == AuditHead::START);
    let mut before = AuditHead::START;
    while before.seq < chain.head.seq {
        let links = store.audit_links(before.seq, PAGE).await?;
        let Some(last) = links.last().map(|link| link.seq) else { break };
        for link in links.into_iter().filter(|link| link.seq <= chain.head.seq) {
            look(&mut check, &before, &link, purged_before);
            before = AuditHead { seq: link.seq, hash: link.hash };
            kept_is_met |= kept == Some(before);
        }
        if last >= chain.head.seq {
            break;
        }
    }
    check.head = before;
    if before.seq < chain.head.seq {
        let (first, last) = (before.seq + 1, chain.head.seq);
        check.wrong(format!("links {first} to {last} are missing at the end of the chain"));
    } else if before.hash != chain.head.hash {
        check.wrong(format!("link {} is not the one the chain ended with", before.seq));
    }
    // Links beyond the head are invalid, unless they were added in the meantime.
    let now = store.audit_chain().await?.head;
    if now.seq < chain.head.seq {
        check.wrong("the end of the chain moved back".to_owned());
    } else if let Some(link) = store.audit_links(now.seq, 1).await?.first() {
        let now = store.audit_chain().await?.head;
        if link.seq > now.seq {
            check.wrong(format!("link {} is beyond the end of the chain", link.seq));
        }
    }
    if let (false, Some(kept)) = (kept_is_met, kept) {
        check.wrong(match kept.seq > check.head.seq {
            true => format!(
                "the head that was kept has number {}, and the chain ends with {}: its end was cut \
                 off",
                kept.seq, check.head.seq
            ),
            false => {
                format!("link {} differs from the stored head: the chain was rewritten", kept.seq)
            }
        });
    }
    Ok(check)
}

fn look(check: &mut AuditCheck, before: &AuditHead, link: &AuditLink, purged_before: Timestamp) {
    let seq = link.seq;
    match seq - before.seq {
        1 => {}
        2 => check.wrong(format!("link {} is missing", before.seq + 1)),
        _ => check.wrong(format!("links {} to {} are missing", before.seq + 1, seq - 1)),
    }
    if seq == before.seq + 1 && !link.follows(&before.hash) {
        check.wrong(format!("link {seq} was changed, or is not in its place"));
    }
    match link.is_as_recorded() {
        Some(true) => check.uses += 1,
        Some(false) => {
            let id = link.used.as_ref().map(|(_, used)| used.id.get()).unwrap_or_default();
            check.wrong(format!("use {seq} (audit id {id}) is not as it was recorded"));
        }
        None if link.at < purged_before => check.purged += 1,
        None => check.wrong(format!("use {seq}, of {}, was removed", link.at)),
    }
}

#[cfg(test)]
mod tests {
    use noetl_model::{AuditId, Tenant};
    use noetl_store::{MemoryStore, SecretUse};

    use super::*;

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    async fn with_uses(count: i64) -> MemoryStore {
        let store = MemoryStore::default();
        for id in 1..=count {
            let used = SecretUse {
                id: AuditId::new(id),
                at: at(id * 10),
                credential: "pg".into(),
                operation: "resolve".into(),
                outcome: "ok".into(),
                worker: None,
                execution: None,
                parent: None,
                server_region: None,
                broker_region: None,
                key_version: None,
                notes: None,
            };
            store.audit_secret(&Tenant::default(), used).await.expect("added");
        }
        store
    }

    #[tokio::test]
    async fn an_unmodified_audit_verifies_over_any_number_of_pages() {
        for count in [0, 1, 999, 1000, 1001, 2500] {
            let store = with_uses(count).await;
            let head = store.audit_chain().await.expect("a chain").head;
            let check = verify_audit(&store, Some(head), at(0)).await.expect("a check");
            assert!(check.is_sound(), "{count}: {check:?}");
            assert_eq!((check.uses, check.purged, check.head), (count as u64, 0, head));
        }
    }

    #[tokio::test]
    async fn a_stored_head_detects_truncated_and_rewritten_chains() {
        let long = with_uses(5).await.audit_chain().await.expect("a chain").head;
        let short = with_uses(3).await;
        let check = verify_audit(&short, Some(long), at(0)).await.expect("a check");
        assert!(check.problems[0].contains("its end was cut off"), "{check:?}");
        let other = AuditHead { seq: 2, ..long };
        let check = verify_audit(&short, Some(other), at(0)).await.expect("a check");
        assert!(check.problems[0].contains("was rewritten"), "{check:?}");
        // One that was kept earlier is a part of a chain that has grown.
        let grown = with_uses(9).await;
        assert!(verify_audit(&grown, Some(long), at(0)).await.expect("a check").is_sound());
    }

    #[tokio::test]
    async fn a_use_that_is_missing_was_purged_only_if_it_is_old() {
        let store = with_uses(4).await;
        let purged = store.purge_secret_uses(std::time::Duration::ZERO, 2).await;
        assert_eq!(purged.expect("a purge"), 2);
        let check = verify_audit(&store, None, at(21)).await.expect("a check");
        assert!(check.is_sound(), "{check:?}");
        assert_eq!((check.uses, check.purged), (2, 2));
        let check = verify_audit(&store, None, at(20)).await.expect("a check");
        assert!(check.problems[0].starts_with("use 2, of "), "{check:?}");
    }
}
