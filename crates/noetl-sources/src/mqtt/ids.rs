//! IDs for messages without one.
//!
//! A broker flags a redelivered message as a duplicate and reuses its packet ID. The packet ID and
//! a digest of the content identify a message this process has seen. A message without the flag
//! always gets a new ID: two messages with equal content are distinct.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};

/// IDs of unacked messages, by client ID and packet ID. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct MessageIds(Arc<Mutex<KnownIds>>);

#[derive(Debug, Default)]
struct KnownIds {
    /// Distinguishes this process from others.
    process: Option<String>,
    count: u64,
    packets: HashMap<(String, u16), (Digest, String)>,
}

type Digest = [u8; 32];

impl MessageIds {
    /// Returns the ID of a message: that of the packet it duplicates, or a new one. Remembers it by
    /// packet ID if there is one.
    pub(super) fn id_of(
        &self,
        client: &str,
        packet: Option<u16>,
        repeated: Option<u16>,
        topic: &str,
        payload: &[u8],
    ) -> String {
        let digest: Digest = Sha256::new()
            .chain_update(topic.len().to_be_bytes())
            .chain_update(topic)
            .chain_update(payload)
            .finalize()
            .into();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(packet) = repeated
            && let Some((same, id)) = known.packets.get(&(client.to_owned(), packet))
            && *same == digest
        {
            return id.clone();
        }
        known.count += 1;
        let process = known.process.get_or_insert_with(process).clone();
        let id = format!("{client}:{process}:{}", known.count);
        if let Some(packet) = packet {
            known.packets.insert((client.to_owned(), packet), (digest, id.clone()));
        }
        id
    }

    pub(super) fn forget(&self, client: &str, packet: u16) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.packets.remove(&(client.to_owned(), packet));
    }
}

/// Returns an identifier of this process: the time of its first message ID and its process ID.
fn process() -> String {
    #[expect(clippy::disallowed_methods, reason = "tells processes apart, and decides nothing")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{:x}-{:x}", now.as_nanos(), std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redelivered_messages_get_the_same_id_and_new_messages_another() {
        let ids = MessageIds::default();
        let first = ids.id_of("c", Some(1), None, "t", b"on");
        assert_eq!(ids.id_of("c", Some(1), Some(1), "t", b"on"), first);
        assert_ne!(ids.id_of("c", Some(2), Some(2), "t", b"on"), first, "another packet");
        assert_ne!(ids.id_of("d", Some(1), Some(1), "t", b"on"), first, "another client");
        assert_ne!(ids.id_of("c", Some(1), Some(1), "t", b"off"), first, "another message");
        let first = ids.id_of("c", Some(1), None, "t", b"on");
        assert_ne!(ids.id_of("c", Some(1), None, "t", b"on"), first, "said to be new");
        let last = ids.id_of("c", Some(1), None, "t", b"on");
        ids.forget("c", 1);
        assert_ne!(ids.id_of("c", Some(1), Some(1), "t", b"on"), last, "answered for");
    }
}
