//! A line between two processes that can be cut: nothing passes, and nobody is told.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::Failure;

/// How long whoever connects over a line that is cut is left without an answer, before it is looked
/// whether anybody still waits.
const PATIENCE: Duration = Duration::from_secs(60);

/// A port of its own that leads to another.
pub(crate) struct Relay {
    pub(crate) port: u16,
    is_cut: watch::Sender<bool>,
}

impl Relay {
    pub(crate) async fn to(target: SocketAddr) -> Result<Self, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (is_cut, cut) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(carry(stream, target, cut.clone()));
            }
        });
        Ok(Self { port, is_cut })
    }

    /// Cuts it, or mends it.
    pub(crate) fn cut(&self, is_cut: bool) {
        self.is_cut.send_replace(is_cut);
    }
}

async fn carry(here: TcpStream, target: SocketAddr, cut: watch::Receiver<bool>) {
    if !passes(&mut cut.clone()).await {
        return;
    }
    let Ok(there) = TcpStream::connect(target).await else { return };
    // Either small messages wait for one another, or the line is slower than none.
    let _ = (here.set_nodelay(true), there.set_nodelay(true));
    let ((from_here, to_here), (from_there, to_there)) = (here.into_split(), there.into_split());
    tokio::select! {
        () = pass(from_here, to_there, cut.clone()) => {}
        () = pass(from_there, to_here, cut) => {}
    }
}

/// Carries bytes one way until either side ends.
async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut cut: watch::Receiver<bool>,
) {
    let mut bytes = vec![0; 16 * 1024];
    loop {
        let Ok(count @ 1..) = from.read(&mut bytes).await else { return };
        if !passes(&mut cut).await || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}

/// Waits until something passes; whether it does before patience ends.
async fn passes(cut: &mut watch::Receiver<bool>) -> bool {
    let mended = tokio::time::timeout(PATIENCE, cut.wait_for(|is_cut| !is_cut)).await;
    matches!(mended, Ok(Ok(_)))
}
