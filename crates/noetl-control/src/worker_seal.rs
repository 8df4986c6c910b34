//! Secrets sealed for one worker: nobody between here and there can read them.
//!
//! The worker registered the public half of an X25519 key. Both sides come to one secret from it and
//! a key made for this answer alone; HKDF-SHA256 makes key and nonce of ChaCha20-Poly1305 from that.
//! The form is that of published workers.

use aes_gcm::aead::OsRng;
use aes_gcm::aead::rand_core::RngCore as _;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{ChaCha20Poly1305, Key, KeyInit as _, Nonce};
use hkdf::Hkdf;
use sha2::Sha256;
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

/// How an answer for a worker is sealed.
pub const SEAL_ALGORITHM: &str = "x25519-hkdf-sha256-chacha20-poly1305";
/// Which form of it this is.
pub const SEAL_VERSION: u32 = 1;

const PUBLIC_BYTES: usize = 32;
const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 12;
const PURPOSE: &[u8] = b"noetl-sealed-v1";

/// An answer that one worker can open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerSeal {
    /// The public half of the key made for it, in base64.
    pub ephemeral: String,
    /// What is sealed, in base64.
    pub ciphertext: String,
}

/// Why nothing can be sealed for a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WorkerKeyError {
    /// What it registered is not a key.
    #[error("its public key is not base64 of 32 bytes")]
    Malformed,
    /// It is one of the few keys with which everybody comes to the same secret.
    #[error("its public key is a weak one")]
    Weak,
    /// It could not be encrypted.
    #[error("could not encrypt")]
    Encrypt,
}

/// The key of one worker process. It is made for the process and is kept nowhere else.
pub struct WorkerKey(StaticSecret);

/// Shows nothing of it.
impl std::fmt::Debug for WorkerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WorkerKey")
    }
}

impl WorkerKey {
    pub fn generate() -> Self {
        let mut secret = Zeroizing::new([0; KEY_BYTES]);
        OsRng.fill_bytes(&mut *secret);
        Self(StaticSecret::from(*secret))
    }

    /// Its public half in base64, as a worker registers it.
    pub fn public(&self) -> String {
        BASE64_STANDARD.encode(PublicKey::from(&self.0).as_bytes())
    }

    /// What was sealed for this key; `None` when it was for another, or was changed on its way.
    pub fn open(&self, seal: &WorkerSeal) -> Option<Zeroizing<Vec<u8>>> {
        let ephemeral = BASE64_STANDARD.decode(seal.ephemeral.trim()).ok()?;
        let ephemeral = PublicKey::from(<[u8; PUBLIC_BYTES]>::try_from(ephemeral).ok()?);
        let shared = self.0.diffie_hellman(&ephemeral);
        if !shared.was_contributory() {
            return None;
        }
        let mut made = Zeroizing::new([0; KEY_BYTES + NONCE_BYTES]);
        let hkdf = Hkdf::<Sha256>::new(None, shared.as_bytes());
        hkdf.expand(PURPOSE, &mut *made).ok()?;
        let (key, nonce) = made.split_at(KEY_BYTES);
        let cipher = ChaCha20Poly1305::new(Key::from_slice(key));
        let aad = format!("{SEAL_ALGORITHM}|v={SEAL_VERSION}");
        let sealed = BASE64_STANDARD.decode(seal.ciphertext.trim()).ok()?;
        let payload = Payload { msg: &sealed, aad: aad.as_bytes() };
        cipher.decrypt(Nonce::from_slice(nonce), payload).ok().map(Zeroizing::new)
    }
}

/// Seals bytes for the holder of a key.
pub(crate) fn seal_for(public: &str, plain: &[u8]) -> Result<WorkerSeal, WorkerKeyError> {
    let mut secret = Zeroizing::new([0; KEY_BYTES]);
    OsRng.fill_bytes(&mut *secret);
    seal_with(&StaticSecret::from(*secret), public, plain)
}

fn seal_with(
    secret: &StaticSecret,
    public: &str,
    plain: &[u8],
) -> Result<WorkerSeal, WorkerKeyError> {
    let bytes = BASE64_STANDARD.decode(public.trim()).map_err(|_| WorkerKeyError::Malformed)?;
    let bytes = <[u8; PUBLIC_BYTES]>::try_from(bytes).map_err(|_| WorkerKeyError::Malformed)?;
    let shared = secret.diffie_hellman(&PublicKey::from(bytes));
    if !shared.was_contributory() {
        return Err(WorkerKeyError::Weak);
    }
    let mut made = Zeroizing::new([0; KEY_BYTES + NONCE_BYTES]);
    let hkdf = Hkdf::<Sha256>::new(None, shared.as_bytes());
    hkdf.expand(PURPOSE, &mut *made).map_err(|_| WorkerKeyError::Encrypt)?;
    let (key, nonce) = made.split_at(KEY_BYTES);
    let cipher = ChaCha20Poly1305::new(Key::from_slice(key));
    let aad = format!("{SEAL_ALGORITHM}|v={SEAL_VERSION}");
    let sealed = cipher
        .encrypt(Nonce::from_slice(nonce), Payload { msg: plain, aad: aad.as_bytes() })
        .map_err(|_| WorkerKeyError::Encrypt)?;
    Ok(WorkerSeal {
        ephemeral: BASE64_STANDARD.encode(PublicKey::from(secret).as_bytes()),
        ciphertext: BASE64_STANDARD.encode(sealed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens a seal as a worker does.
    fn open(worker: &StaticSecret, seal: &WorkerSeal) -> Option<Vec<u8>> {
        let ephemeral = BASE64_STANDARD.decode(&seal.ephemeral).ok()?;
        let ephemeral = PublicKey::from(<[u8; 32]>::try_from(ephemeral).ok()?);
        let shared = worker.diffie_hellman(&ephemeral);
        let mut made = [0; 44];
        Hkdf::<Sha256>::new(None, shared.as_bytes()).expand(b"noetl-sealed-v1", &mut made).ok()?;
        let cipher = ChaCha20Poly1305::new(Key::from_slice(&made[..32]));
        let aad = b"x25519-hkdf-sha256-chacha20-poly1305|v=1";
        let ciphertext = BASE64_STANDARD.decode(&seal.ciphertext).ok()?;
        cipher.decrypt(Nonce::from_slice(&made[32..]), Payload { msg: &ciphertext, aad }).ok()
    }

    fn public(secret: &StaticSecret) -> String {
        BASE64_STANDARD.encode(PublicKey::from(secret).as_bytes())
    }

    /// Made by another implementation, with secrets that count up.
    const WORKER_PUBLIC: &str = "B6N8vBQgk8i3VdwbEOhstCY3StFqqFPtC9/AsrhtHHw=";
    const EPHEMERAL: &str = "VxR2nRFr92Q2rnS8eT0sMK0ZA8WaxSc4BcfiaYtBDDY=";
    const CIPHERTEXT: &str = "OwnOVJumUWHrDx0axXrlVrSI6ZQvGgBaKcluIgoJAvQGFcbSne/Jc5AlJJGDQbGCIkHskUPsHcR8r1qNfjwoxXQrl/gnQq+4bvgDOM8Hi05PPPbn6g==";
    const PLAIN: &[u8] =
        br#"{"id":"1","name":"db","type":"postgres","data":{"password":"secret"}}"#;

    fn counting(from: u8) -> StaticSecret {
        let mut bytes = [0; 32];
        for (place, byte) in (from..).zip(&mut bytes) {
            *byte = place;
        }
        StaticSecret::from(bytes)
    }

    #[test]
    fn the_sealed_form_is_the_published_one() {
        let worker = counting(1);
        assert_eq!(public(&worker), WORKER_PUBLIC);
        let sealed = seal_with(&counting(101), WORKER_PUBLIC, PLAIN).expect("sealed");
        assert_eq!((&*sealed.ephemeral, &*sealed.ciphertext), (EPHEMERAL, CIPHERTEXT));
        assert_eq!(open(&worker, &sealed).as_deref(), Some(PLAIN));
    }

    #[test]
    fn only_the_worker_it_is_for_opens_it_and_no_two_look_the_same() {
        let (worker, other) = (counting(1), counting(2));
        let one = seal_for(&public(&worker), b"secret").expect("sealed");
        let two = seal_for(&public(&worker), b"secret").expect("sealed");
        assert_ne!(one, two);
        for sealed in [&one, &two] {
            assert_eq!(open(&worker, sealed).as_deref(), Some(&b"secret"[..]));
            assert_eq!(open(&other, sealed), None);
        }
        let mixed = WorkerSeal { ephemeral: two.ephemeral, ..one };
        assert_eq!(open(&worker, &mixed), None);
    }

    #[test]
    fn a_key_opens_what_was_sealed_for_it_as_others_seal_it_and_nothing_else() {
        let published = WorkerKey(counting(1));
        assert_eq!(published.public(), WORKER_PUBLIC);
        let theirs =
            WorkerSeal { ephemeral: EPHEMERAL.to_owned(), ciphertext: CIPHERTEXT.to_owned() };
        assert_eq!(published.open(&theirs).as_deref().map(Vec::as_slice), Some(PLAIN));
        let (mine, other) = (WorkerKey::generate(), WorkerKey::generate());
        let sealed = seal_for(&mine.public(), b"secret").expect("sealed");
        assert_eq!(mine.open(&sealed).as_deref().map(Vec::as_slice), Some(&b"secret"[..]));
        assert!(other.open(&sealed).is_none());
        let weak = WorkerSeal { ephemeral: BASE64_STANDARD.encode([0; 32]), ..sealed.clone() };
        assert!(mine.open(&weak).is_none());
        let cut = WorkerSeal { ciphertext: "AAAA".to_owned(), ..sealed };
        assert!(mine.open(&cut).is_none());
    }

    #[test]
    fn what_is_no_key_or_a_weak_one_gets_nothing() {
        for text in ["", "no key", "YWJj"] {
            assert_eq!(seal_for(text, b"a"), Err(WorkerKeyError::Malformed), "{text}");
        }
        let weak = BASE64_STANDARD.encode([0; 32]);
        assert_eq!(seal_for(&weak, b"a"), Err(WorkerKeyError::Weak));
    }
}
