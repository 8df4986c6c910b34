//! TLS connection to a broker, exposed to the MQTT client as a Unix socket.
//!
//! The MQTT client's own TLS support depends on an outdated certificate verifier. This module
//! connects and verifies with the TLS library of the rest of the program, and the client connects
//! through a Unix socket. The socket is in a directory of this user and accepts a single
//! connection, only from this process, so that no other program can read or write the decrypted
//! data.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ring::rand::SecureRandom as _;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tracing::debug;

use crate::source::{SourceError, chain};

/// Number of connections from other processes to reject before the tunnel gives up.
const STRANGERS_MAX: usize = 16;

/// Time to wait for the client to connect to the socket. Connecting takes well under a second; if
/// the client never does, the tunnel closes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A directory with a socket, removed when dropped.
struct SocketDirectory {
    directory: PathBuf,
    socket: PathBuf,
}

impl Drop for SocketDirectory {
    fn drop(&mut self) {
        // Best effort: the directory is temporary, and a restart of the machine removes leftovers.
        let _ = std::fs::remove_file(&self.socket);
        let _ = std::fs::remove_dir(&self.directory);
    }
}

/// Connects to a broker, verifies it, and returns the path of the local socket.
pub(super) async fn open(host: &str, port: u16) -> Result<PathBuf, SourceError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    open_with(host, port, roots).await
}

async fn open_with(host: &str, port: u16, roots: RootCertStore) -> Result<PathBuf, SourceError> {
    let stream = connect(host, port, roots).await?;
    let failed = |error: io::Error| SourceError::Away(chain("no socket for MQTT", &error));
    let entrance = entrance().map_err(failed)?;
    let listener = UnixListener::bind(&entrance.socket).map_err(failed)?;
    let path = entrance.socket.clone();
    tokio::spawn(carry(listener, entrance, stream));
    Ok(path)
}

async fn connect(
    host: &str,
    port: u16,
    roots: RootCertStore,
) -> Result<TlsStream<TcpStream>, SourceError> {
    let away =
        |error: io::Error| SourceError::Away(chain("the MQTT broker is not reached", &error));
    let name = ServerName::try_from(host.to_owned())
        .map_err(|error| SourceError::Settings(chain("the host of `url` is no name", &error)))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config
        .map_err(|error| SourceError::Settings(chain("TLS cannot be set up", &error)))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect((host, port)).await.map_err(away)?;
    let _ = stream.set_nodelay(true);
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(away)
}

fn entrance() -> io::Result<SocketDirectory> {
    let mut chance = [0; 16];
    let drawn = ring::rand::SystemRandom::new().fill(&mut chance);
    drawn.map_err(|_| io::Error::other("no randomness"))?;
    let name: String = chance.iter().map(|byte| format!("{byte:02x}")).collect();
    let directory = std::env::temp_dir().join(format!("noetl-{name}"));
    // Fails if the directory exists, because then it belongs to another program.
    DirBuilder::new().mode(0o700).create(&directory)?;
    let socket = directory.join("mqtt");
    Ok(SocketDirectory { directory, socket })
}

/// Copies bytes between this process's connection and the broker until either ends.
async fn carry(
    listener: UnixListener,
    entrance: SocketDirectory,
    mut broker: TlsStream<TcpStream>,
) {
    for _ in 0..STRANGERS_MAX {
        let accepted = tokio::time::timeout(PATIENCE, listener.accept()).await;
        let Ok(Ok((mut client, _))) = accepted else { return };
        if !is_own(&client) {
            continue;
        }
        drop(listener);
        drop(entrance);
        if let Err(error) = tokio::io::copy_bidirectional(&mut client, &mut broker).await {
            debug!(%error, "MQTT connection ended");
        }
        return;
    }
}

/// Returns `true` if the other end is this process.
fn is_own(client: &UnixStream) -> bool {
    let own = i32::try_from(std::process::id()).ok();
    client.peer_cred().is_ok_and(|peer| peer.pid().is_some() && peer.pid() == own)
}

/// Returns the path in the form the client expects.
pub(super) fn address(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use rcgen::{CertifiedKey, generate_simple_self_signed};
    use rustls::ServerConfig;
    use rustls::pki_types::PrivateKeyDer;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::*;

    /// Starts an echo server. Returns its port and a root store that trusts it.
    async fn echo() -> (u16, RootCertStore) {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .expect("a server");
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).expect("a root");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
        let port = listener.local_addr().expect("an address").port();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    let mut piece = [0; 64];
                    while let Ok(count @ 1..) = stream.read(&mut piece).await {
                        let _ = stream.write_all(&piece[..count]).await;
                    }
                });
            }
        });
        (port, roots)
    }

    #[tokio::test]
    async fn bytes_are_encrypted_and_the_socket_is_removed_after_use() {
        let (port, roots) = echo().await;
        let path = open_with("localhost", port, roots).await.expect("a tunnel");
        let mut client = UnixStream::connect(&path).await.expect("a connection");
        client.write_all(b"hello").await.expect("sent");
        let mut answer = [0; 5];
        client.read_exact(&mut answer).await.expect("an answer");
        assert_eq!(&answer, b"hello");
        assert!(!path.exists() && !path.parent().expect("a directory").exists());
    }

    #[tokio::test]
    async fn an_unverified_broker_receives_no_data() {
        let (port, _) = echo().await;
        let refused = open_with("localhost", port, RootCertStore::empty()).await;
        assert!(matches!(refused, Err(SourceError::Away(_))), "{refused:?}");
        let (port, roots) = echo().await;
        let refused = open_with("127.0.0.1", port, roots).await;
        assert!(matches!(refused, Err(SourceError::Away(_))), "another name: {refused:?}");
    }
}
