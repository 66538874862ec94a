//! A TLS stream that tells of the first thing it hears.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::client::TlsStream;

/// In TLS 1.3 the client is done before the server has looked at its certificate (RFC 8446, 4.4.2.4): only the first
/// thing that the server says shows whether it is content. HTTP/2 has it speak at once (RFC 9113, 3.4).
#[derive(Debug)]
pub(in crate::push) struct Secured {
    stream: TlsStream<TcpStream>,
    first: Option<oneshot::Sender<io::Result<()>>>,
}

impl Secured {
    pub(super) fn new(stream: TlsStream<TcpStream>) -> (Self, oneshot::Receiver<io::Result<()>>) {
        let (first, heard) = oneshot::channel();
        (Self { stream, first: Some(first) }, heard)
    }

    /// The socket beneath.
    pub(in crate::push) fn socket(&self) -> &TcpStream {
        self.stream.get_ref().0
    }
}

impl AsyncRead for Secured {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = ready!(Pin::new(&mut self.stream).poll_read(cx, buf));
        if let Some(first) = self.first.take() {
            let heard = match &result {
                Ok(()) if buf.filled().len() > before => Ok(()),
                Ok(()) => Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) => Err(copy(error)),
            };
            first.send(heard).ok(); // nobody waits for it once the time for connecting is over
        }
        Poll::Ready(result)
    }
}

impl AsyncWrite for Secured {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The error once more, with what TLS said: `io::Error` cannot be cloned.
fn copy(error: &io::Error) -> io::Error {
    match error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>()) {
        Some(cause) => io::Error::new(error.kind(), cause.clone()),
        None => error.kind().into(),
    }
}
