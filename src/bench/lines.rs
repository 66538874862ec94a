//! A sink of lines over TCP: what a peer's output is counted with.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use memchr::memchr_iter;

use super::{Counted, Tally};

/// Counts the lines of every connection; the function that is returned gives what came so far.
///
/// # Errors
/// When the address cannot be had.
pub fn count_lines(address: SocketAddr) -> io::Result<impl Fn() -> Counted> {
    let listener = TcpListener::bind(address)?;
    let tally = Tally::default();
    let shared = tally.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let shared = shared.clone();
            // It ends with its peer.
            thread::spawn(move || count(stream, &shared));
        }
    });
    Ok(move || tally.counted())
}

/// Bytes of a line at the most: whoever never ends one does not use up memory.
const LONGEST: usize = 1 << 20;

fn count(mut stream: TcpStream, tally: &Tally) {
    let mut buffer = vec![0; LONGEST];
    let mut held = 0;
    while let Ok(read @ 1..) = stream.read(&mut buffer[held..]) {
        let end = held + read;
        let mut begin = 0;
        let mut seen = tally.lock();
        for newline in memchr_iter(b'\n', &buffer[held..end]).map(|at| held + at) {
            seen.events += 1;
            seen.numbers.see(&buffer[begin..newline]);
            begin = newline + 1;
        }
        drop(seen);
        buffer.copy_within(begin..end, 0);
        held = (end - begin) % LONGEST;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn lines_are_counted_however_they_are_cut() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let lines = count_lines(free).unwrap();
        let mut stream = TcpStream::connect(free).unwrap();
        stream.set_nodelay(true).unwrap();
        for piece in ["one\ntw", "o\n", "three\nfour"] {
            stream.write_all(piece.as_bytes()).unwrap();
            thread::sleep(Duration::from_millis(20));
        }
        let deadline = Instant::now() + Duration::from_secs(20);
        while lines().events < 3 && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(lines().events, 3, "the last line has no end");
    }
}
