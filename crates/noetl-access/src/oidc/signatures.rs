//! Verifies token signatures with `ring`, the cryptography library that TLS already links.
//!
//! `jsonwebtoken` parses tokens and checks claims. Either of its own two backends would add a
//! second C library, or a pure Rust stack whose `rsa` crate has an open timing advisory.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};

/// Verifies only: the server neither signs tokens nor generates keys.
static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory: new_verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes `ring` the backend of `jsonwebtoken` in this process. Safe to call repeatedly.
pub(super) fn install() {
    let _ = PROVIDER.install_default();
}

/// Parameters of `ring` for an algorithm, by key family.
enum Scheme {
    Rsa(&'static RsaParameters),
    Curve(&'static dyn VerificationAlgorithm),
}

struct RingVerifier {
    algorithm: Algorithm,
    scheme: Scheme,
    key: DecodingKey,
}

fn new_verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    if key.family() != algorithm.family() {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    let scheme = match algorithm {
        Algorithm::RS256 => Scheme::Rsa(&RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Scheme::Rsa(&RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Scheme::Rsa(&RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Scheme::Rsa(&RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Scheme::Rsa(&RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Scheme::Rsa(&RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => Scheme::Curve(&ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => Scheme::Curve(&ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => Scheme::Curve(&ED25519),
        // HMAC is never accepted, because the provider doesn't share its secret. Neither are
        // algorithms that a later version of the crate may add.
        _ => return Err(ErrorKind::UnsupportedAlgorithm.into()),
    };
    Ok(Box::new(RingVerifier { algorithm: *algorithm, scheme, key: key.clone() }))
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let verified = match (&self.scheme, self.key.kind()) {
            (Scheme::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n: unpadded(n), e: unpadded(e) }
                    .verify(parameters, message, signature)
            }
            (Scheme::Curve(algorithm), DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(*algorithm, point).verify(message, signature)
            }
            (Scheme::Rsa(_), DecodingKeyKind::SecretOrDer(_))
            | (Scheme::Curve(_), DecodingKeyKind::RsaModulusExponent { .. }) => {
                return Err(Error::new());
            }
        };
        verified.map_err(Error::from_source)
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

/// Returns the number without leading zero bytes, which some providers add and `ring` rejects.
fn unpadded(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use jsonwebtoken::crypto::verify;
    use ring::rand::SystemRandom;
    use ring::signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
        EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _,
    };

    use super::*;

    const MESSAGE: &[u8] = b"header.claims";

    fn accepts(key: &DecodingKey, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        install();
        let signature = URL_SAFE_NO_PAD.encode(signature);
        verify(&signature, message, key, algorithm).unwrap_or(false)
    }

    fn ecdsa(signing: &'static EcdsaSigningAlgorithm) -> (DecodingKey, Vec<u8>) {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(signing, &random).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(signing, pkcs8.as_ref(), &random).expect("a key");
        let signature = pair.sign(&random, MESSAGE).expect("a signature");
        (DecodingKey::from_ec_der(pair.public_key().as_ref()), signature.as_ref().to_vec())
    }

    #[test]
    fn curve_signatures_verify_for_their_own_message_key_and_algorithm_only() {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).expect("a key");
        let ed = DecodingKey::from_ed_der(pair.public_key().as_ref());
        let ed_signature = pair.sign(MESSAGE).as_ref().to_vec();
        let (p256, p256_signature) = ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING);
        let (p384, p384_signature) = ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING);
        let (stranger, _) = ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING);

        assert!(accepts(&ed, Algorithm::EdDSA, MESSAGE, &ed_signature));
        assert!(accepts(&p256, Algorithm::ES256, MESSAGE, &p256_signature));
        assert!(accepts(&p384, Algorithm::ES384, MESSAGE, &p384_signature));

        assert!(!accepts(&p256, Algorithm::ES256, b"header.other", &p256_signature));
        assert!(!accepts(&stranger, Algorithm::ES256, MESSAGE, &p256_signature));
        assert!(!accepts(&p256, Algorithm::ES384, MESSAGE, &p256_signature));
        assert!(!accepts(&p256, Algorithm::RS256, MESSAGE, &p256_signature));
        assert!(!accepts(&ed, Algorithm::EdDSA, MESSAGE, &[]));
    }

    #[test]
    fn a_shared_secret_verifies_nothing() {
        let secret = DecodingKey::from_secret(b"secret");
        for algorithm in [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512] {
            assert!(new_verifier(&algorithm, &secret).is_err());
        }
    }

    #[test]
    fn leading_zero_bytes_of_a_modulus_are_dropped() {
        assert_eq!(unpadded(&[0, 0, 1, 0]), [1, 0]);
        assert_eq!(unpadded(&[1]), [1]);
        assert!(unpadded(&[0]).is_empty());
    }
}
