//! Encryption of what credentials hold.
//!
//! Every record has a key of its own, which is stored beside it, wrapped by the one key of the
//! installation. So changing that one means wrapping small keys again, and no two records are
//! encrypted under one key. The stored form is that of the published server: one JSON text, AES-256
//! in GCM for both, nothing authenticated besides.

use std::fmt;
use std::sync::Arc;

use aes_gcm::aead::rand_core::RngCore as _;
use aes_gcm::aead::{Aead as _, OsRng};
use aes_gcm::{AeadCore as _, Aes256Gcm, Key, KeyInit as _, Nonce};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use noetl_model::Value;
use noetl_store::Sealed;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// The variable that holds the key, as it is named beside what it wraps.
pub const KEY_VARIABLE: &str = "NOETL_ENCRYPTION_KEY";

/// The variable that holds the key before, while what it wrapped is wrapped again.
pub const PREVIOUS_KEY_VARIABLE: &str = "NOETL_ENCRYPTION_KEY_PREVIOUS";

/// The variable that names the key.
pub const KEY_VERSION_VARIABLE: &str = "NOETL_ENCRYPTION_KEY_VERSION";

const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 12;

/// The key of one record.
type RecordKey = [u8; KEY_BYTES];

const VERSION: u32 = 1;
const ALGORITHM: &str = "AES-256-GCM";
const PROVIDER: &str = "local";
const KEY_ID: &str = "env:NOETL_ENCRYPTION_KEY";
const KEY_VERSION: &str = "v1";

/// A text that is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It is not base64.
    #[error("the encryption key is not base64")]
    NotBase64,
    /// It has another length.
    #[error("the encryption key has {0} bytes, and 32 are needed")]
    Length(usize),
}

/// The key that wraps all others, and the one that did before, for as long as something is still
/// wrapped by it. Printing it shows nothing of either.
#[derive(Clone)]
pub struct EncryptionKey {
    key: Zeroizing<[u8; KEY_BYTES]>,
    /// What it is called beside what it wraps.
    version: Arc<str>,
    previous: Option<Zeroizing<[u8; KEY_BYTES]>>,
}

/// Which key wraps the key of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WrappedBy {
    /// The one in use.
    Current,
    /// The one before.
    Previous,
}

impl fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EncryptionKey(…)")
    }
}

impl EncryptionKey {
    /// Reads a key: base64 of 32 bytes. Blanks around it do not count.
    pub fn from_base64(text: &str) -> Result<Self, KeyError> {
        let bytes = BASE64_STANDARD.decode(text.trim()).map_err(|_| KeyError::NotBase64)?;
        let bytes = Zeroizing::new(bytes);
        let key = <[u8; KEY_BYTES]>::try_from(&**bytes).map_err(|_| KeyError::Length(bytes.len()));
        Ok(Self::new(Zeroizing::new(key?)))
    }

    /// A new key.
    pub fn generate() -> Self {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        OsRng.fill_bytes(&mut *key);
        Self::new(key)
    }

    fn new(key: Zeroizing<[u8; KEY_BYTES]>) -> Self {
        Self { key, version: KEY_VERSION.into(), previous: None }
    }

    /// The same key under another name.
    #[must_use]
    pub fn with_version(self, version: &str) -> Self {
        Self { version: version.into(), ..self }
    }

    /// The same key, and one that what was encrypted before is still read with.
    #[must_use]
    pub fn with_previous(self, previous: &Self) -> Self {
        Self { previous: Some(previous.key.clone()), ..self }
    }

    /// What the key is called.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether there is a key from before.
    pub(crate) fn has_previous(&self) -> bool {
        self.previous.is_some()
    }

    /// The key as text, for the file it is kept in.
    pub fn to_base64(&self) -> Zeroizing<String> {
        Zeroizing::new(BASE64_STANDARD.encode(self.key.as_slice()))
    }

    /// Encrypts a value.
    pub fn seal(&self, value: &Value) -> Result<Sealed, SealError> {
        let plain = Zeroizing::new(serde_json::to_vec(value).map_err(|_| SealError::Encrypt)?);
        let mut record = Zeroizing::new([0; KEY_BYTES]);
        OsRng.fill_bytes(&mut *record);
        let envelope = Envelope {
            v: VERSION,
            alg: ALGORITHM.to_owned(),
            ct: encrypt(&record, &plain)?,
            dek: Wrapped {
                p: PROVIDER.to_owned(),
                kid: KEY_ID.to_owned(),
                kv: self.version.to_string(),
                ct: encrypt(&self.key, &*record)?,
            },
        };
        serde_json::to_string(&envelope).map(Sealed::new).map_err(|_| SealError::Encrypt)
    }

    /// Decrypts a value.
    pub fn open(&self, sealed: &Sealed) -> Result<Value, SealError> {
        let envelope = Envelope::read(sealed)?;
        let (record, _) = self.unwrap(&envelope)?;
        let plain = decrypt(&record, &envelope.ct)?;
        serde_json::from_slice(&plain).map_err(|_| SealError::Shape)
    }

    /// Which of the two keys a text needs.
    pub(crate) fn wrapped_by(&self, sealed: &Sealed) -> Result<WrappedBy, SealError> {
        Ok(self.unwrap(&Envelope::read(sealed)?)?.1)
    }

    /// A text with its key wrapped by the key in use and named after it; none when it is so
    /// already. What it holds is not decrypted.
    pub(crate) fn rewrap(&self, sealed: &Sealed) -> Result<Option<Sealed>, SealError> {
        let mut envelope = Envelope::read(sealed)?;
        let (record, by) = self.unwrap(&envelope)?;
        if by == WrappedBy::Current && *envelope.dek.kv == *self.version {
            return Ok(None);
        }
        envelope.dek.kv = self.version.to_string();
        envelope.dek.ct = encrypt(&self.key, &*record)?;
        let text = serde_json::to_string(&envelope).map_err(|_| SealError::Encrypt)?;
        Ok(Some(Sealed::new(text)))
    }

    /// The key of a record, and which key it was wrapped by. What another key has wrapped does not
    /// pass for what this one has, so trying is safe.
    fn unwrap(&self, envelope: &Envelope) -> Result<(Zeroizing<RecordKey>, WrappedBy), SealError> {
        let tried =
            [(Some(&self.key), WrappedBy::Current), (self.previous.as_ref(), WrappedBy::Previous)];
        for (key, by) in tried {
            let Some(key) = key else { continue };
            match decrypt(key, &envelope.dek.ct) {
                Err(SealError::Key) => {}
                Err(error) => return Err(error),
                Ok(unwrapped) => {
                    let record = RecordKey::try_from(&**unwrapped).map_err(|_| SealError::Shape);
                    return Ok((Zeroizing::new(record?), by));
                }
            }
        }
        Err(SealError::Key)
    }
}

/// What a text says its key is wrapped by; nothing when it is no encrypted value.
pub(crate) fn key_version(sealed: &Sealed) -> Option<String> {
    serde_json::from_str::<Envelope>(sealed.as_str()).ok().map(|envelope| envelope.dek.kv)
}

/// Why a value was not encrypted, or not decrypted. None of it says anything of the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// It could not be encrypted.
    #[error("could not encrypt")]
    Encrypt,
    /// What is stored is not an encrypted value.
    #[error("what is stored is not an encrypted value")]
    Shape,
    /// Its key is wrapped by a service that is not asked here.
    #[error("its key is wrapped by '{0}', which is not available here")]
    Provider(String),
    /// Its key was wrapped by another one, or something was changed.
    #[error("it was encrypted under another key")]
    Key,
}

#[derive(Serialize, Deserialize)]
struct Envelope {
    v: u32,
    alg: String,
    ct: String,
    dek: Wrapped,
}

impl Envelope {
    fn read(sealed: &Sealed) -> Result<Self, SealError> {
        let envelope: Self = serde_json::from_str(sealed.as_str()).map_err(|_| SealError::Shape)?;
        if envelope.v != VERSION || envelope.alg != ALGORITHM {
            return Err(SealError::Shape);
        }
        if envelope.dek.p != PROVIDER {
            return Err(SealError::Provider(envelope.dek.p));
        }
        Ok(envelope)
    }
}

#[derive(Serialize, Deserialize)]
struct Wrapped {
    p: String,
    kid: String,
    kv: String,
    ct: String,
}

/// Base64 of the nonce, the encrypted bytes and their tag.
fn encrypt(key: &[u8; KEY_BYTES], plain: &[u8]) -> Result<String, SealError> {
    let nonce = Aes256Gcm::generate_nonce(&mut OsRng);
    let cipher = Aes256Gcm::new(Key::<Aes256Gcm>::from_slice(key));
    let encrypted = cipher.encrypt(&nonce, plain).map_err(|_| SealError::Encrypt)?;
    Ok(BASE64_STANDARD.encode([nonce.as_slice(), &encrypted].concat()))
}

fn decrypt(key: &[u8; KEY_BYTES], text: &str) -> Result<Zeroizing<Vec<u8>>, SealError> {
    let bytes = BASE64_STANDARD.decode(text).map_err(|_| SealError::Shape)?;
    let (nonce, encrypted) = bytes.split_at_checked(NONCE_BYTES).ok_or(SealError::Shape)?;
    let cipher = Aes256Gcm::new(Key::<Aes256Gcm>::from_slice(key));
    let plain = cipher.decrypt(Nonce::from_slice(nonce), encrypted).map_err(|_| SealError::Key)?;
    Ok(Zeroizing::new(plain))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Made by another implementation of AES-GCM, with keys and nonces that count up.
    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    const STORED: &str = r#"{"v":1,"alg":"AES-256-GCM","ct":"AAECAwQFBgcICQoL5IlMI9Yor8unMe379ejtxss7H+BCcaQH/SfdOGHAY47fQqn2FwhluEFnI3JznWQ1acCnkbQN0NSxaBE19xNtBQ==","dek":{"p":"local","kid":"env:NOETL_ENCRYPTION_KEY","kv":"v1","ct":"FBUWFxgZGhscHR4fXrvUfHYGkTvqymReRTVjU4VyUX5s5QZtle2HL6umMaw5uh8chTlxbDDL1Zwdh21h"}}"#;

    fn key() -> EncryptionKey {
        EncryptionKey::from_base64(KEY).expect("a key")
    }

    #[test]
    fn what_others_have_stored_is_read() {
        let found = key().open(&Sealed::new(STORED));
        assert_eq!(found, Ok(json!({"token": "s3cret", "port": 5432, "note": "größer"})));
    }

    #[test]
    fn what_is_sealed_is_opened_and_never_looks_the_same() {
        for value in [json!(null), json!("bare"), json!({"a": [1, {"b": "c"}]}), json!({})] {
            let (one, other) = (key().seal(&value), key().seal(&value));
            let (one, other) = (one.expect("sealed"), other.expect("sealed"));
            assert_ne!(one, other);
            assert_eq!(key().open(&one), Ok(value.clone()));
            assert_eq!(key().open(&other), Ok(value));
        }
    }

    #[test]
    fn the_stored_form_is_the_published_one() {
        let sealed = key().seal(&json!("a")).expect("sealed");
        let stored: Value = serde_json::from_str(sealed.as_str()).expect("JSON");
        let head = r#"{"v":1,"alg":"AES-256-GCM","ct":""#;
        assert!(sealed.as_str().starts_with(head), "{}", sealed.as_str());
        let middle = r#"","dek":{"p":"local","kid":"env:NOETL_ENCRYPTION_KEY","kv":"v1","ct":""#;
        assert!(sealed.as_str().contains(middle), "{}", sealed.as_str());
        let bytes = |text: &Value| BASE64_STANDARD.decode(text.as_str().unwrap_or_default());
        // A nonce of 12, what is encrypted, a tag of 16.
        assert_eq!(bytes(&stored["ct"]).map(|bytes| bytes.len()), Ok(12 + 3 + 16));
        assert_eq!(bytes(&stored["dek"]["ct"]).map(|bytes| bytes.len()), Ok(12 + 32 + 16));
    }

    #[test]
    fn another_key_a_change_or_another_shape_opens_nothing() {
        let other = EncryptionKey::generate();
        assert_eq!(other.open(&Sealed::new(STORED)), Err(SealError::Key));
        let changed = STORED.replace("5IlMI9Y", "5IlMI9Z");
        assert_eq!(key().open(&Sealed::new(changed)), Err(SealError::Key));
        let kms = STORED.replace("\"local\"", "\"gcp-kms\"");
        assert_eq!(key().open(&Sealed::new(kms)), Err(SealError::Provider("gcp-kms".into())));
        for text in ["", "{}", "plain text", &STORED.replace("\"v\":1", "\"v\":2")] {
            assert_eq!(key().open(&Sealed::new(text)), Err(SealError::Shape), "{text}");
        }
        let short = STORED.replace("AAECAwQFBgcICQoL5IlMI9Yor8un", "AAEC");
        assert!(key().open(&Sealed::new(short)).is_err());
    }

    #[test]
    fn a_key_before_reads_on_until_everything_is_wrapped_again() {
        let (old, value) = (key(), json!({"a": "secret"}));
        let new = EncryptionKey::generate().with_version("v2");
        let both = new.clone().with_previous(&old);
        let sealed = old.seal(&value).expect("sealed");
        assert_eq!(new.open(&sealed), Err(SealError::Key));
        assert_eq!(both.open(&sealed), Ok(value.clone()));
        assert_eq!(both.wrapped_by(&sealed), Ok(WrappedBy::Previous));
        let again = both.rewrap(&sealed).expect("wrapped").expect("another text");
        assert_eq!(key_version(&again).as_deref(), Some("v2"));
        assert_eq!(new.open(&again), Ok(value), "without the key before");
        assert_eq!(old.open(&again), Err(SealError::Key));
        assert_eq!(both.rewrap(&again), Ok(None), "a repeat has nothing to do");
        let stored =
            |text: &Sealed| -> Value { serde_json::from_str(text.as_str()).expect("JSON") };
        assert_eq!(stored(&sealed)["ct"], stored(&again)["ct"], "what it holds stays as it is");
    }

    #[test]
    fn what_no_key_has_wrapped_is_not_wrapped_again() {
        let both = EncryptionKey::generate().with_previous(&EncryptionKey::generate());
        assert_eq!(both.rewrap(&Sealed::new(STORED)), Err(SealError::Key));
        assert_eq!(both.rewrap(&Sealed::new("{}")), Err(SealError::Shape));
        let kms = STORED.replace("\"local\"", "\"gcp-kms\"");
        let refused = Err(SealError::Provider("gcp-kms".into()));
        assert_eq!(both.rewrap(&Sealed::new(kms)), refused);
    }

    #[test]
    fn a_key_is_32_bytes_and_is_not_printed() {
        assert_eq!(EncryptionKey::from_base64("no key").map(|_| ()), Err(KeyError::NotBase64));
        assert_eq!(EncryptionKey::from_base64("YWJj").map(|_| ()), Err(KeyError::Length(3)));
        assert_eq!(EncryptionKey::from_base64("").map(|_| ()), Err(KeyError::Length(0)));
        let padded = EncryptionKey::from_base64(&format!(" {KEY}\n")).expect("a key");
        assert_eq!(&**padded.to_base64(), KEY);
        assert_eq!(format!("{padded:?}"), "EncryptionKey(…)");
    }
}
