//! TLS for the HTTP listener.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, crypto};
use tokio_rustls::TlsAcceptor;

/// TLS configuration of a listener. Cheap to clone.
#[derive(Clone)]
pub struct Tls {
    pub(crate) acceptor: TlsAcceptor,
}

/// Errors in certificates or keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// The text contains no certificate in PEM.
    #[error("holds no certificate in PEM form")]
    Certificate,
    /// The text contains no private key in PEM.
    #[error("holds no private key in PEM form")]
    Key,
    /// The key doesn't belong to the certificate.
    #[error("does not fit the certificate")]
    Mismatch,
    /// The text contains no usable CA certificate for client certificates.
    #[error("holds no certificate to check those of clients with")]
    ClientCa,
}

impl Tls {
    /// Builds the TLS configuration from PEM texts: the certificate chain, its key, and optionally
    /// the CA certificates that client certificates must be issued by.
    pub fn from_pem(
        certificates: &[u8],
        key: &[u8],
        client_ca: Option<&[u8]>,
    ) -> Result<Self, TlsError> {
        let chain = parsed(certificates).ok_or(TlsError::Certificate)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsError::Key)?;
        let provider = Arc::new(crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider.clone());
        let config = config.with_safe_default_protocol_versions();
        let config = config.map_err(|_| TlsError::Mismatch)?;
        let config = match client_ca {
            None => config.with_no_client_auth(),
            Some(ca) => {
                let mut roots = RootCertStore::empty();
                for certificate in parsed(ca).ok_or(TlsError::ClientCa)? {
                    roots.add(certificate).map_err(|_| TlsError::ClientCa)?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                config.with_client_cert_verifier(verifier.map_err(|_| TlsError::ClientCa)?)
            }
        };
        let config = config.with_single_cert(chain, key).map_err(|_| TlsError::Mismatch)?;
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)) })
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

fn parsed(text: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    found.ok().filter(|found| !found.is_empty())
}
