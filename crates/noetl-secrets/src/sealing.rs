//! Envelope encryption of credentials and other stored secrets.
//!
//! Every record has its own key, which is stored with it, wrapped by the installation's encryption
//! key. So rotating that key rewraps only small keys, and no two records are encrypted under one
//! key. The stored form is one JSON text, with AES-256-GCM for both layers.
//!
//! Envelope version 1 is that of the published server and authenticates no associated data. Version
//! 2 binds the value to its location: tenant and name. It is written once an operator enables it,
//! because older replicas cannot read it; from then on, version 1 is rejected.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use aes_gcm::aead::rand_core::RngCore as _;
use aes_gcm::aead::{Aead as _, OsRng, Payload};
use aes_gcm::{AeadCore as _, Aes256Gcm, Key, KeyInit as _, Nonce};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use noetl_model::{Tenant, Value};
use noetl_store::{SealedLocation, SealedRow, SealedText};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// Environment variable with the encryption key. Recorded as the key ID in envelopes.
pub const KEY_VARIABLE: &str = "NOETL_ENCRYPTION_KEY";

/// Environment variable with the previous key, set during rotation.
pub const PREVIOUS_KEY_VARIABLE: &str = "NOETL_ENCRYPTION_KEY_PREVIOUS";

/// Environment variable with the version name of the key.
pub const KEY_VERSION_VARIABLE: &str = "NOETL_ENCRYPTION_KEY_VERSION";

const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 12;

type RecordKey = [u8; KEY_BYTES];

/// Envelope version without associated data.
const UNBOUND: u32 = 1;
/// Envelope version bound to tenant and name.
const BOUND: u32 = 2;
const ALGORITHM: &str = "AES-256-GCM";
const PROVIDER: &str = "local";
const KEY_ID: &str = "env:NOETL_ENCRYPTION_KEY";
const KEY_VERSION: &str = "v1";

/// Errors of parsing an encryption key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The text is not base64.
    #[error("the encryption key is not base64")]
    NotBase64,
    /// The key is not 32 bytes long.
    #[error("the encryption key has {0} bytes, and 32 are needed")]
    Length(usize),
}

/// Key that wraps all record keys, and the previous one, until no record is wrapped by it. `Debug`
/// reveals neither.
#[derive(Clone)]
pub struct EncryptionKey {
    key: Zeroizing<[u8; KEY_BYTES]>,
    /// Version name recorded in envelopes.
    version: Arc<str>,
    previous: Option<Zeroizing<[u8; KEY_BYTES]>>,
    binding: Arc<AtomicU8>,
}

/// Envelope versions that are written and read, in the order in which a store advances through
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Binding {
    /// Writes version 1, reads both.
    Unbound,
    /// Writes version 2, reads both.
    Writing,
    /// Writes and reads version 2 only.
    Bound,
}

/// Location of an encrypted value, to which version 2 of the envelope binds it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SealedAt<'a> {
    Credential {
        tenant: &'a Tenant,
        name: &'a str,
    },
    Keychain {
        tenant: &'a Tenant,
        /// Cache key, unique in the tenant.
        key: &'a str,
    },
    /// A secret of the installation, by name.
    Setting(&'a str),
}

impl<'a> SealedAt<'a> {
    /// Returns the location of a row.
    pub(crate) fn from_row(row: &'a SealedRow) -> Self {
        match &row.location {
            SealedLocation::Credential(_) => {
                Self::Credential { tenant: &row.tenant, name: &row.name }
            }
            SealedLocation::Keychain(tenant, key) => Self::Keychain { tenant, key },
            SealedLocation::Setting(name) => Self::Setting(name),
        }
    }

    /// Returns the associated data of a location. Each part is preceded by its length.
    fn bytes(&self) -> Vec<u8> {
        let (what, tenant, name) = match self {
            Self::Credential { tenant, name } => ("credential", tenant.as_str(), *name),
            Self::Keychain { tenant, key } => ("keychain", tenant.as_str(), *key),
            Self::Setting(name) => ("setting", "", *name),
        };
        let mut bytes = format!("noetl-sealed|v={BOUND}").into_bytes();
        for part in [what, tenant, name] {
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        bytes
    }
}

/// Key that wraps a record key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WrappedBy {
    /// The key that wraps new records.
    Current,
    Previous,
}

impl fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EncryptionKey(…)")
    }
}

impl EncryptionKey {
    /// Parses a key: base64 of 32 bytes. Surrounding whitespace is ignored.
    pub fn from_base64(text: &str) -> Result<Self, KeyError> {
        let bytes = BASE64_STANDARD.decode(text.trim()).map_err(|_| KeyError::NotBase64)?;
        let bytes = Zeroizing::new(bytes);
        let key = <[u8; KEY_BYTES]>::try_from(&**bytes).map_err(|_| KeyError::Length(bytes.len()));
        Ok(Self::new(Zeroizing::new(key?)))
    }

    pub fn generate() -> Self {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        OsRng.fill_bytes(&mut *key);
        Self::new(key)
    }

    fn new(key: Zeroizing<[u8; KEY_BYTES]>) -> Self {
        Self { key, version: KEY_VERSION.into(), previous: None, binding: Arc::default() }
    }

    /// Sets the version name of the key.
    #[must_use]
    pub fn with_version(self, version: &str) -> Self {
        Self { version: version.into(), ..self }
    }

    /// Adds the previous key, for reading records that it still wraps.
    #[must_use]
    pub fn with_previous(self, previous: &Self) -> Self {
        Self { previous: Some(previous.key.clone()), ..self }
    }

    /// Returns the version name of the key.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns `true` if a previous key is configured.
    pub(crate) fn has_previous(&self) -> bool {
        self.previous.is_some()
    }

    /// Returns the key as base64, for its file.
    pub fn to_base64(&self) -> Zeroizing<String> {
        Zeroizing::new(BASE64_STANDARD.encode(self.key.as_slice()))
    }

    /// Returns which envelope versions are written and read.
    pub(crate) fn binding(&self) -> Binding {
        match self.binding.load(Ordering::Acquire) {
            0 => Binding::Unbound,
            1 => Binding::Writing,
            _ => Binding::Bound,
        }
    }

    /// Advances the envelope versions, for every clone of this key. Irreversible.
    pub(crate) fn bind(&self, binding: Binding) {
        self.binding.fetch_max(binding as u8, Ordering::AcqRel);
    }

    /// Encrypts a value for its location.
    pub(crate) fn seal_at(
        &self,
        at: &SealedAt<'_>,
        value: &Value,
    ) -> Result<SealedText, SealError> {
        let version = if self.binding() == Binding::Unbound { UNBOUND } else { BOUND };
        self.seal_as(version, at, value)
    }

    fn seal_as(
        &self,
        version: u32,
        at: &SealedAt<'_>,
        value: &Value,
    ) -> Result<SealedText, SealError> {
        let plain = Zeroizing::new(serde_json::to_vec(value).map_err(|_| SealError::Encrypt)?);
        let mut record = Zeroizing::new([0; KEY_BYTES]);
        OsRng.fill_bytes(&mut *record);
        let envelope = Envelope {
            v: version,
            alg: ALGORITHM.to_owned(),
            ct: encrypt(&record, &plain, &authenticated(version, at))?,
            dek: Wrapped {
                p: PROVIDER.to_owned(),
                kid: KEY_ID.to_owned(),
                kv: self.version.to_string(),
                ct: encrypt(&self.key, &*record, &[])?,
            },
        };
        serde_json::to_string(&envelope).map(SealedText::new).map_err(|_| SealError::Encrypt)
    }

    /// Decrypts the value of a location.
    pub(crate) fn open_at(
        &self,
        at: &SealedAt<'_>,
        sealed: &SealedText,
    ) -> Result<Value, SealError> {
        let envelope = Envelope::read(sealed)?;
        if envelope.v == UNBOUND && self.binding() == Binding::Bound {
            return Err(SealError::Unbound);
        }
        self.open_envelope(at, &envelope)
    }

    fn open_envelope(&self, at: &SealedAt<'_>, envelope: &Envelope) -> Result<Value, SealError> {
        let (record, _) = self.unwrap(envelope)?;
        let plain = decrypt(&record, &envelope.ct, &authenticated(envelope.v, at));
        let plain = plain.map_err(|error| match error {
            // The record key unwraps, so the location differs.
            SealError::Key if envelope.v == BOUND => SealError::Moved,
            other => other,
        })?;
        serde_json::from_slice(&plain).map_err(|_| SealError::Shape)
    }

    /// Returns a value bound to its location, or `None` if it already is.
    pub(crate) fn bound(
        &self,
        at: &SealedAt<'_>,
        sealed: &SealedText,
    ) -> Result<Option<SealedText>, SealError> {
        let envelope = Envelope::read(sealed)?;
        let value = self.open_envelope(at, &envelope)?;
        match envelope.v {
            UNBOUND => self.seal_as(BOUND, at, &value).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns which of the two keys unwraps a record.
    pub(crate) fn wrapped_by(&self, sealed: &SealedText) -> Result<WrappedBy, SealError> {
        Ok(self.unwrap(&Envelope::read(sealed)?)?.1)
    }

    /// Returns a record with its key wrapped by the current key and labeled with its version, or
    /// `None` if it already is. Does not decrypt the value.
    pub(crate) fn rewrap(&self, sealed: &SealedText) -> Result<Option<SealedText>, SealError> {
        let mut envelope = Envelope::read(sealed)?;
        let (record, by) = self.unwrap(&envelope)?;
        if by == WrappedBy::Current && *envelope.dek.kv == *self.version {
            return Ok(None);
        }
        envelope.dek.kv = self.version.to_string();
        envelope.dek.ct = encrypt(&self.key, &*record, &[])?;
        let text = serde_json::to_string(&envelope).map_err(|_| SealError::Encrypt)?;
        Ok(Some(SealedText::new(text)))
    }

    /// Returns the record key, and the key that wraps it. Trying both is safe: authentication fails
    /// for the wrong one.
    fn unwrap(&self, envelope: &Envelope) -> Result<(Zeroizing<RecordKey>, WrappedBy), SealError> {
        let tried =
            [(Some(&self.key), WrappedBy::Current), (self.previous.as_ref(), WrappedBy::Previous)];
        for (key, by) in tried {
            let Some(key) = key else { continue };
            match decrypt(key, &envelope.dek.ct, &[]) {
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

/// Returns the key version that a record names, or `None` if it is not an envelope.
pub(crate) fn key_version(sealed: &SealedText) -> Option<String> {
    serde_json::from_str::<Envelope>(sealed.as_str()).ok().map(|envelope| envelope.dek.kv)
}

/// Returns `true` if a record is bound to its location.
pub(crate) fn is_bound(sealed: &SealedText) -> bool {
    Envelope::read(sealed).is_ok_and(|envelope| envelope.v == BOUND)
}

/// Errors of encryption and decryption. None reveals anything about the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The value could not be encrypted.
    #[error("could not encrypt")]
    Encrypt,
    /// The stored text is not an envelope.
    #[error("stored text is not an encrypted value")]
    Shape,
    /// The record key is wrapped by a key service that this process does not support.
    #[error("record key is wrapped by '{0}', a key service that is not available here")]
    Provider(String),
    /// The record key is wrapped by another key, or the record was modified.
    #[error("value was encrypted under another key")]
    Key,
    /// The value is bound to another tenant, name, or kind of row.
    #[error("value was sealed for another tenant or name: the row was swapped or renamed")]
    Moved,
    /// The value is in envelope version 1, which is rejected since `noetl credential reseal`.
    #[error(
        "value is in envelope version 1, which is rejected since values are bound to tenant and name; \
         store the value again"
    )]
    Unbound,
}

#[derive(Serialize, Deserialize)]
struct Envelope {
    v: u32,
    alg: String,
    ct: String,
    dek: Wrapped,
}

impl Envelope {
    fn read(sealed: &SealedText) -> Result<Self, SealError> {
        let envelope: Self = serde_json::from_str(sealed.as_str()).map_err(|_| SealError::Shape)?;
        if !matches!(envelope.v, UNBOUND | BOUND) || envelope.alg != ALGORITHM {
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

/// Returns the associated data of an envelope version.
fn authenticated(version: u32, at: &SealedAt<'_>) -> Vec<u8> {
    if version == UNBOUND { Vec::new() } else { at.bytes() }
}

/// Returns base64 of the nonce, the ciphertext, and the tag.
fn encrypt(key: &[u8; KEY_BYTES], plain: &[u8], aad: &[u8]) -> Result<String, SealError> {
    let nonce = Aes256Gcm::generate_nonce(&mut OsRng);
    let cipher = Aes256Gcm::new(Key::<Aes256Gcm>::from_slice(key));
    let payload = Payload { msg: plain, aad };
    let encrypted = cipher.encrypt(&nonce, payload).map_err(|_| SealError::Encrypt)?;
    Ok(BASE64_STANDARD.encode([nonce.as_slice(), &encrypted].concat()))
}

fn decrypt(key: &[u8; KEY_BYTES], text: &str, aad: &[u8]) -> Result<Zeroizing<Vec<u8>>, SealError> {
    let bytes = BASE64_STANDARD.decode(text).map_err(|_| SealError::Shape)?;
    let (nonce, encrypted) = bytes.split_at_checked(NONCE_BYTES).ok_or(SealError::Shape)?;
    let cipher = Aes256Gcm::new(Key::<Aes256Gcm>::from_slice(key));
    let payload = Payload { msg: encrypted, aad };
    let plain = cipher.decrypt(Nonce::from_slice(nonce), payload).map_err(|_| SealError::Key)?;
    Ok(Zeroizing::new(plain))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Made by another implementation of AES-GCM, with keys and nonces that count up.
    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    const STORED: &str = r#"{"v":1,"alg":"AES-256-GCM","ct":"AAECAwQFBgcICQoL5IlMI9Yor8unMe379ejtxss7H+BCcaQH/SfdOGHAY47fQqn2FwhluEFnI3JznWQ1acCnkbQN0NSxaBE19xNtBQ==","dek":{"p":"local","kid":"env:NOETL_ENCRYPTION_KEY","kv":"v1","ct":"FBUWFxgZGhscHR4fXrvUfHYGkTvqymReRTVjU4VyUX5s5QZtle2HL6umMaw5uh8chTlxbDDL1Zwdh21h"}}"#;

    const AT: SealedAt<'static> = SealedAt::Setting("here");

    fn key() -> EncryptionKey {
        EncryptionKey::from_base64(KEY).expect("a key")
    }

    #[test]
    fn values_sealed_by_the_published_server_are_opened() {
        let found = key().open_at(&AT, &SealedText::new(STORED));
        assert_eq!(found, Ok(json!({"token": "s3cret", "port": 5432, "note": "größer"})));
    }

    #[test]
    fn sealed_values_are_opened_and_never_look_the_same() {
        for value in [json!(null), json!("bare"), json!({"a": [1, {"b": "c"}]}), json!({})] {
            let (one, other) = (key().seal_at(&AT, &value), key().seal_at(&AT, &value));
            let (one, other) = (one.expect("sealed"), other.expect("sealed"));
            assert_ne!(one, other);
            assert_eq!(key().open_at(&AT, &one), Ok(value.clone()));
            assert_eq!(key().open_at(&AT, &other), Ok(value));
        }
    }

    #[test]
    fn the_stored_form_is_the_published_one() {
        let sealed = key().seal_at(&AT, &json!("a")).expect("sealed");
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
        assert_eq!(other.open_at(&AT, &SealedText::new(STORED)), Err(SealError::Key));
        let changed = STORED.replace("5IlMI9Y", "5IlMI9Z");
        assert_eq!(key().open_at(&AT, &SealedText::new(changed)), Err(SealError::Key));
        let kms = STORED.replace("\"local\"", "\"gcp-kms\"");
        assert_eq!(
            key().open_at(&AT, &SealedText::new(kms)),
            Err(SealError::Provider("gcp-kms".into()))
        );
        for text in ["", "{}", "plain text", &STORED.replace("\"v\":1", "\"v\":3")] {
            assert_eq!(key().open_at(&AT, &SealedText::new(text)), Err(SealError::Shape), "{text}");
        }
        let short = STORED.replace("AAECAwQFBgcICQoL5IlMI9Yor8un", "AAEC");
        assert!(key().open_at(&AT, &SealedText::new(short)).is_err());
    }

    #[test]
    fn a_key_before_reads_on_until_everything_is_wrapped_again() {
        let (old, value) = (key(), json!({"a": "secret"}));
        let new = EncryptionKey::generate().with_version("v2");
        let both = new.clone().with_previous(&old);
        let sealed = old.seal_at(&AT, &value).expect("sealed");
        assert_eq!(new.open_at(&AT, &sealed), Err(SealError::Key));
        assert_eq!(both.open_at(&AT, &sealed), Ok(value.clone()));
        assert_eq!(both.wrapped_by(&sealed), Ok(WrappedBy::Previous));
        let again = both.rewrap(&sealed).expect("wrapped").expect("another text");
        assert_eq!(key_version(&again).as_deref(), Some("v2"));
        assert_eq!(new.open_at(&AT, &again), Ok(value), "without the key before");
        assert_eq!(old.open_at(&AT, &again), Err(SealError::Key));
        assert_eq!(both.rewrap(&again), Ok(None), "a repeat has nothing to do");
        let stored =
            |text: &SealedText| -> Value { serde_json::from_str(text.as_str()).expect("JSON") };
        assert_eq!(stored(&sealed)["ct"], stored(&again)["ct"], "what it holds stays as it is");
    }

    #[test]
    fn values_wrapped_by_an_unknown_key_are_not_rewrapped() {
        let both = EncryptionKey::generate().with_previous(&EncryptionKey::generate());
        assert_eq!(both.rewrap(&SealedText::new(STORED)), Err(SealError::Key));
        assert_eq!(both.rewrap(&SealedText::new("{}")), Err(SealError::Shape));
        let kms = STORED.replace("\"local\"", "\"gcp-kms\"");
        let refused = Err(SealError::Provider("gcp-kms".into()));
        assert_eq!(both.rewrap(&SealedText::new(kms)), refused);
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

    #[test]
    fn a_bound_value_opens_where_it_was_sealed_and_nowhere_else() {
        let (mine, other) = (Tenant::default(), Tenant::new("other"));
        let at = SealedAt::Credential { tenant: &mine, name: "db" };
        let key = key();
        key.bind(Binding::Writing);
        let sealed = key.seal_at(&at, &json!("secret")).expect("sealed");
        assert!(sealed.as_str().starts_with(r#"{"v":2,"#), "{}", sealed.as_str());
        assert_eq!(key.open_at(&at, &sealed), Ok(json!("secret")));
        for wrong in [
            SealedAt::Credential { tenant: &other, name: "db" },
            SealedAt::Credential { tenant: &mine, name: "d" },
            SealedAt::Keychain { tenant: &mine, key: "db" },
            SealedAt::Setting("db"),
        ] {
            assert_eq!(key.open_at(&wrong, &sealed), Err(SealError::Moved), "{wrong:?}");
        }
        let new = EncryptionKey::generate().with_version("v2");
        let rewrapped = new.clone().with_previous(&key).rewrap(&sealed).expect("wrapped");
        let rewrapped = rewrapped.expect("another text");
        assert_eq!(new.open_at(&at, &rewrapped), Ok(json!("secret")), "rotation keeps the binding");
    }

    #[test]
    fn the_old_envelope_is_read_until_it_is_refused() {
        let key = key();
        assert!(key.open_at(&AT, &SealedText::new(STORED)).is_ok());
        let bound =
            key.bound(&AT, &SealedText::new(STORED)).expect("it opens").expect("another text");
        assert_eq!(key.bound(&AT, &bound), Ok(None), "a repeat has nothing to do");
        let shared = key.clone();
        key.bind(Binding::Bound);
        key.bind(Binding::Writing);
        assert_eq!(shared.binding(), Binding::Bound, "there is no way back");
        assert_eq!(shared.open_at(&AT, &SealedText::new(STORED)), Err(SealError::Unbound));
        assert!(shared.open_at(&AT, &bound).is_ok());
    }
}
