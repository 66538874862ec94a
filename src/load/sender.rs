//! The sockets of a load: each flow is one source port.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use super::{Load, messages::Messages};
use crate::config::MAX_DATAGRAM;
use crate::socket::options;
use crate::socket::transmit::{Headers, send_many};

/// Datagrams that one piece may be cut into (`UDP_MAX_SEGMENTS`, include/linux/udp.h).
const MAX_SEGMENTS: usize = 64;

pub(super) struct Sender {
    flows: Vec<UdpSocket>,
    turn: usize,
    /// Datagrams in a piece; 0 where each is sent as it is.
    segments: usize,
    headers: Headers,
    pub(super) refused: u64,
}

impl Sender {
    pub(super) fn open(load: &Load) -> io::Result<Self> {
        let any: IpAddr = match load.target {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let open = |_| {
            let socket = UdpSocket::bind((any, 0))?;
            socket.connect(load.target)?;
            Ok(socket)
        };
        let flows: Vec<_> = (0..load.flows).map(open).collect::<io::Result<_>>()?;
        let mut segments = (MAX_DATAGRAM / load.size).min(MAX_SEGMENTS);
        if segments < 2 || !load.segment || load.corpus.is_some() || !cut_pieces(&flows, load.size) {
            segments = 0;
        }
        Ok(Self { flows, turn: 0, segments, headers: Headers::default(), refused: 0 })
    }

    /// Sends up to `most` messages on the next flow; returns how many.
    pub(super) fn send(&mut self, messages: &mut Messages, most: u64) -> io::Result<u64> {
        let most = usize::try_from(most).unwrap_or(usize::MAX).min(Messages::row_length());
        let turn = self.turn;
        self.turn = (turn + 1) % self.flows.len();
        match messages.size() {
            Some(size) if self.segments > 0 => self.send_piece(messages, size, most, turn),
            _ => self.send_each(messages, most, turn),
        }
    }

    /// Counts what the sockets have heard since their last send.
    pub(super) fn look_for_refusals(&mut self) {
        let heard = |flow: &&UdpSocket| matches!(flow.take_error(), Ok(Some(error)) if is_refusal(&error));
        self.refused += self.flows.iter().filter(heard).count() as u64;
    }

    fn send_piece(
        &mut self,
        messages: &mut Messages,
        size: usize,
        most: usize,
        turn: usize,
    ) -> io::Result<u64> {
        let count = most.min(self.segments);
        let piece = messages.next_row(count, turn);
        loop {
            match self.flows[turn].send(piece) {
                Ok(_) => return Ok(count as u64),
                Err(error) if is_refusal(&error) => self.refused += 1,
                // The way there has a smaller MTU than a datagram needs: cutting is not possible after all.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => break,
                Err(error) => return Err(error),
            }
        }
        self.segments = 0;
        for flow in &self.flows {
            options::set_segment_size(flow.as_fd(), 0)?;
        }
        let slices: Vec<_> = piece.chunks_exact(size).map(io::IoSlice::new).collect();
        self.send_slices(&slices, turn)
    }

    fn send_each(&mut self, messages: &mut Messages, most: usize, turn: usize) -> io::Result<u64> {
        let slices = messages.next_slices(most, turn);
        self.send_slices(&slices, turn)
    }

    fn send_slices(&mut self, slices: &[io::IoSlice<'_>], turn: usize) -> io::Result<u64> {
        let mut sent = 0;
        while sent < slices.len() {
            match send_many(self.flows[turn].as_fd(), &slices[sent..], &mut self.headers) {
                Ok(count) => sent += count,
                Err(error) if is_refusal(&error) => self.refused += 1,
                Err(error) => return Err(error),
            }
        }
        Ok(sent as u64)
    }
}

/// A connected socket hears that nobody listened to an earlier datagram; the one at hand was not sent.
fn is_refusal(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionRefused
}

fn cut_pieces(flows: &[UdpSocket], size: usize) -> bool {
    let Ok(size) = u16::try_from(size) else { return false };
    flows.iter().all(|flow| options::set_segment_size(flow.as_fd(), size).is_ok())
}
