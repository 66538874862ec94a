//! The stream under a connection: acknowledges without delay, and writes in large pieces. TLS is beneath it, so that it
//! encrypts those.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::gather::{Bodies, GATHER, Gathered, SLICES};
use super::wire::Wire;

/// A stream that acknowledges what it reads as soon as nothing it writes does, and gathers writes until they are flushed.
#[derive(Debug)]
pub(super) struct Transport {
    stream: Wire,
    gathered: Gathered,
    bodies: Bodies,
    /// How much was gathered when a flush was put off, bytes: the task is woken, and flushes again when it comes by.
    put_off: usize,
    /// The kernel took no more: it wakes the task when it does, and no other turn may be asked for meanwhile.
    is_full: bool,
    /// Something was read, and nothing has been written since that would have acknowledged it.
    ack_due: bool,
}

impl Transport {
    /// Wraps a connected stream.
    ///
    /// # Errors
    /// The kernel's, when it refuses `TCP_NODELAY`.
    pub(super) fn new(stream: Wire, bodies: Bodies) -> io::Result<Self> {
        stream.socket().set_nodelay(true)?; // what is flushed is meant to leave
        Ok(Self { stream, gathered: Gathered::new(), bodies, put_off: 0, is_full: false, ack_due: false })
    }

    /// Acknowledges what was read, where nothing else does. Vector's server leaves Nagle on: its window updates and answers wait for
    /// our acknowledgement, and the kernel delays that by 40 ms. Setting the option sends it; the kernel forgets the setting as it
    /// goes (tcp(7)). A turn of HTTP/2 ends with a flush, so that is the time: what it had to say has carried it by then.
    fn acknowledge(&mut self) {
        if std::mem::take(&mut self.ack_due) {
            // A socket that refuses it is merely slow.
            SockRef::from(self.stream.socket()).set_tcp_quickack(true).ok();
        }
    }

    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.gathered.is_empty() {
            let mut slices = [io::IoSlice::new(&[]); SLICES];
            let count = self.gathered.slices(&mut slices);
            let written = Pin::new(&mut self.stream).poll_write_vectored(cx, &slices[..count]);
            self.is_full = written.is_pending();
            match ready!(written)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => {
                    self.gathered.advance(written);
                    self.ack_due = false; // it goes along
                }
            }
        }
        self.put_off = 0;
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.ack_due = true;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Transport {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length: usize = bufs.iter().map(|buf| buf.len()).sum();
        let this = &mut *self;
        if !this.gathered.has_room_for(length) {
            ready!(this.poll_drain(cx))?;
        }
        let mut taken = 0;
        for buf in bufs {
            let part = buf.len().min(GATHER - taken);
            this.gathered.add(&buf[..part], &this.bodies);
            taken += part;
        }
        Poll::Ready(Ok(taken))
    }

    fn is_write_vectored(&self) -> bool {
        true // so that a frame's header and payload come together
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // HTTP/2 flushes after every frame, and once more when it has no other. So a flush that finds more than the last one did only
        // asks for another turn: more frames may come, in this one or, as a request's body after its headers, in that.
        let length = self.gathered.len();
        if length > self.put_off && length < GATHER && !self.is_full {
            self.put_off = length;
            cx.waker().wake_by_ref();
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_drain(cx))?;
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.acknowledge();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;
    use std::task::Wake;

    use bytes::Bytes;
    use futures_util::FutureExt;
    use rustls::ServerConfig;
    use rustls::crypto::ring;
    use rustls::pki_types::PrivateKeyDer;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio_rustls::TlsAcceptor;

    use super::*;
    use crate::config::Tls;
    use crate::push::tls;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (stream, listener.accept().await.unwrap().0)
    }

    #[tokio::test]
    async fn every_byte_arrives_in_order_whatever_the_sizes() {
        let (stream, peer) = pair().await;
        every_byte_arrives(Wire::Plain(stream), peer).await;
    }

    #[tokio::test]
    async fn every_byte_arrives_in_order_over_tls() {
        let (stream, peer) = pair().await;
        let made = rcgen::generate_simple_self_signed(["v".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let mut server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        server.send_tls13_tickets = 0; // this client reads nothing, and closing with something unread is a reset
        let accepting = tokio::spawn(TlsAcceptor::from(Arc::new(server)).accept(peer));
        let options = Tls { verify_certificate: false, ..Tls::default() };
        let (endpoint, mut seen) = ("https://v".parse().unwrap(), tls::Seen::default());
        let (secured, _) = tls::handshake(stream, &endpoint, &options, &mut seen).await.unwrap();
        let peer = accepting.await.unwrap().unwrap();
        every_byte_arrives(Wire::Tls(Box::new(secured)), peer).await;
    }

    #[tokio::test]
    async fn what_is_read_is_acknowledged_by_a_write_or_else_by_the_flush() {
        let (stream, mut peer) = pair().await;
        let mut transport = Transport::new(Wire::Plain(stream), Bodies::default()).unwrap();
        let mut buffer = [0; 1];
        for writes in [false, true] {
            peer.write_all(b"?").await.unwrap();
            transport.read_exact(&mut buffer).await.unwrap();
            assert!(transport.ack_due);
            if writes {
                transport.write_all(b"!").await.unwrap();
                transport.flush().await.unwrap(); // is put off: there may be more
                assert!(transport.ack_due);
                transport.flush().await.unwrap();
            } else {
                transport.flush().await.unwrap();
            }
            assert!(!transport.ack_due);
        }
        peer.read_exact(&mut buffer).await.unwrap();
        assert_eq!(&buffer, b"!");
    }

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    /// What one turn's flush does: whether it is done, and how often it asked for another turn.
    fn flush(transport: &mut Transport) -> (Poll<()>, usize) {
        let wakes = Arc::new(Wakes::default());
        let waker = Arc::clone(&wakes).into();
        let flushed = Pin::new(transport).poll_flush(&mut Context::from_waker(&waker));
        (flushed.map(|flushed| flushed.unwrap()), wakes.0.load(Relaxed))
    }

    #[tokio::test]
    async fn a_flush_waits_while_there_is_more_and_asks_for_a_turn_each_time() {
        let (stream, mut peer) = pair().await;
        let mut transport = Transport::new(Wire::Plain(stream), Bodies::default()).unwrap();
        assert_eq!(flush(&mut transport), (Poll::Ready(()), 0), "nothing is there");
        for piece in [&b"headers, "[..], b"the beginning of a body, ", b"and its end"] {
            transport.write_all(piece).await.unwrap();
            assert_eq!(flush(&mut transport), (Poll::Ready(()), 1));
            assert!(!transport.gathered.is_empty());
        }
        assert_eq!(flush(&mut transport), (Poll::Ready(()), 0), "no more has come");
        assert!(transport.gathered.is_empty());
        transport.write_all(b"!").await.unwrap();
        assert_eq!(
            flush(&mut transport),
            (Poll::Ready(()), 1),
            "less than the last time, but more than nothing"
        );
        assert_eq!(flush(&mut transport), (Poll::Ready(()), 0));
        drop(transport);
        let mut received = String::new();
        peer.read_to_string(&mut received).await.unwrap();
        assert_eq!(received, "headers, the beginning of a body, and its end!");
    }

    #[tokio::test]
    async fn a_full_socket_is_waited_for_and_not_asked_again_and_again() {
        let (stream, mut peer) = pair().await;
        let mut transport = Transport::new(Wire::Plain(stream), Bodies::default()).unwrap();
        let piece = [b'x'; GATHER / 2];
        let mut sent = 0;
        while transport.write_all(&piece).now_or_never().is_some() {
            sent += piece.len();
        }
        for _ in 0..3 {
            assert_eq!(flush(&mut transport), (Poll::Pending, 0), "the kernel says when");
        }
        let reading = tokio::spawn(async move {
            let mut received = 0;
            let mut buffer = vec![0; 1 << 20];
            while received < sent {
                received += peer.read(&mut buffer).await.unwrap();
            }
        });
        transport.shutdown().await.unwrap();
        reading.await.unwrap();
    }

    async fn every_byte_arrives(wire: Wire, mut peer: impl AsyncRead + Unpin) {
        let sent: Vec<u8> = (0..9_000_000u32).map(|i| (i / 7) as u8).collect();
        let expected = sent.clone();
        let writing = tokio::spawn(async move {
            let bodies = Bodies::default();
            let mut transport = Transport::new(wire, bodies.clone()).unwrap();
            let sent = Bytes::from(sent);
            // A third of it is not known as a request's body: what is kept and what is copied take turns.
            let _under_way = bodies.add(sent.slice(3_000_000..));
            let mut rest = &sent[..];
            for size in [1, 9, 16_384, GATHER - 1, GATHER, GATHER + 1, 200_000, 0].iter().cycle() {
                let (now, later) = rest.split_at((*size).min(rest.len()));
                let (left, right) = now.split_at(now.len() / 3);
                transport.write_all(left).await.unwrap();
                let mut slices = [io::IoSlice::new(right), io::IoSlice::new(&[])];
                let mut slices = &mut slices[..];
                while slices.iter().any(|slice| !slice.is_empty()) {
                    let written = transport.write_vectored(slices).await.unwrap();
                    io::IoSlice::advance_slices(&mut slices, written);
                }
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            transport.shutdown().await.unwrap();
        });
        let mut received = Vec::new();
        peer.read_to_end(&mut received).await.unwrap();
        writing.await.unwrap();
        assert!(received == expected);
    }
}
