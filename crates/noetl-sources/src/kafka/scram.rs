//! SCRAM client (RFC 5802, RFC 7677), which proves knowledge of a password without sending it.

use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::{digest, hmac, pbkdf2};

/// Hash function of the exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hash {
    Sha256,
    Sha512,
}

/// Maximum iteration count that a broker may request. Brokers usually use 4,096 to 16,384; more
/// than this limit would block a thread for seconds.
const ITERATIONS_MAX: u32 = 1_000_000;

impl Hash {
    fn hmac(self) -> hmac::Algorithm {
        match self {
            Self::Sha256 => hmac::HMAC_SHA256,
            Self::Sha512 => hmac::HMAC_SHA512,
        }
    }

    fn digest(self) -> &'static digest::Algorithm {
        match self {
            Self::Sha256 => &digest::SHA256,
            Self::Sha512 => &digest::SHA512,
        }
    }

    fn pbkdf2(self) -> pbkdf2::Algorithm {
        match self {
            Self::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
            Self::Sha512 => pbkdf2::PBKDF2_HMAC_SHA512,
        }
    }
}

/// An exchange that waits for the server's first message.
pub(super) struct Scram {
    hash: Hash,
    password: String,
    nonce: String,
    /// Client's first message without the GS2 header, which declares that no channel is bound.
    bare: String,
}

impl Scram {
    pub(super) fn new(hash: Hash, user: &str, password: &str, nonce: String) -> Self {
        let user = user.replace('=', "=3D").replace(',', "=2C");
        let bare = format!("n={user},r={nonce}");
        Self { hash, password: password.to_owned(), nonce, bare }
    }

    /// Returns the client's first message.
    pub(super) fn first(&self) -> String {
        format!("n,,{}", self.bare)
    }

    /// Returns the client's final message for the server's first one, and the expected server
    /// verifier.
    pub(super) fn last(self, first: &str) -> Result<(String, String), &'static str> {
        let part = |name: &str| first.split(',').find_map(|part| part.strip_prefix(name));
        let nonce = part("r=").ok_or("it names no nonce")?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err("its nonce does not go on from ours");
        }
        let salt = part("s=").and_then(|salt| STANDARD.decode(salt).ok());
        let salt = salt.ok_or("it names no salt")?;
        let iterations = part("i=").and_then(|count| count.parse::<u32>().ok());
        let iterations = iterations.filter(|count| *count <= ITERATIONS_MAX);
        let iterations = iterations.and_then(NonZeroU32::new);
        let iterations = iterations.ok_or("it names no number of rounds that makes sense")?;

        let mut salted = vec![0; self.hash.digest().output_len()];
        let password = self.password.as_bytes();
        pbkdf2::derive(self.hash.pbkdf2(), iterations, &salt, password, &mut salted);
        let keyed = |key: &[u8], text: &[u8]| {
            hmac::sign(&hmac::Key::new(self.hash.hmac(), key), text).as_ref().to_vec()
        };
        let client_key = keyed(&salted, b"Client Key");
        let stored = digest::digest(self.hash.digest(), &client_key);
        // "biws" is the Base64 form of "n,,", the GS2 header without channel binding.
        let unproven = format!("c=biws,r={nonce}");
        let auth_message = format!("{},{first},{unproven}", self.bare);
        let signature = keyed(stored.as_ref(), auth_message.as_bytes());
        let proof: Vec<u8> = client_key.iter().zip(&signature).map(|(a, b)| a ^ b).collect();
        let server_key = keyed(&salted, b"Server Key");
        let verifier = STANDARD.encode(keyed(&server_key, auth_message.as_bytes()));
        Ok((format!("{unproven},p={}", STANDARD.encode(proof)), format!("v={verifier}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reproduces the exchange of RFC 7677.
    #[test]
    fn scram_reproduces_the_exchange_of_the_standard() {
        let scram = Scram::new(Hash::Sha256, "user", "pencil", "rOprNGfwEbeRWgbNEkqO".to_owned());
        assert_eq!(scram.first(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let first = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                     s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let (last, verifier) = scram.last(first).unwrap();
        assert_eq!(
            last,
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
             p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        assert_eq!(verifier, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    #[test]
    fn invalid_server_messages_end_the_exchange() {
        for first in ["", "r=abc", "r=abcd,s=!,i=1", "r=abcd,s=aa==,i=0", "r=xyz,s=aa==,i=1"] {
            let scram = Scram::new(Hash::Sha512, "a,b=c", "p", "abc".to_owned());
            assert_eq!(scram.first(), "n,,n=a=2Cb=3Dc,r=abc");
            assert!(scram.last(first).is_err(), "{first}");
        }
        let scram = Scram::new(Hash::Sha512, "u", "p", "abc".to_owned());
        assert!(scram.last("r=abcd,s=aaaa,i=4000000000").is_err(), "it would take for ever");
    }
}
