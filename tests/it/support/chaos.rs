//! A way to a Vector that goes wrong on demand: closed, silent, or cut.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// How it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Open,
    /// Connections are accepted, and nothing goes in either direction.
    Silent,
    /// Nobody listens.
    Closed,
}

pub struct Chaos {
    pub address: SocketAddr,
    way: watch::Sender<Way>,
}

impl Chaos {
    pub async fn start(vector: SocketAddr) -> Self {
        let mut listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let way = watch::Sender::new(Way::Open);
        let mut changes = way.subscribe();
        tokio::spawn(async move {
            loop {
                let closed = async { changes.wait_for(|way| *way == Way::Closed).await.is_ok() };
                let stream = tokio::select! {
                    accepted = listener.accept() => accepted.unwrap().0,
                    true = closed => {
                        drop(listener);
                        if changes.wait_for(|way| *way != Way::Closed).await.is_err() {
                            return;
                        }
                        listener = TcpListener::bind(address).await.unwrap();
                        continue;
                    }
                    else => return,
                };
                tokio::spawn(lead(stream, vector, changes.clone()));
            }
        });
        Self { address, way }
    }

    /// Changes it. Whatever it becomes, connections do not outlive the next change after a silence.
    pub fn set(&self, way: Way) {
        self.way.send_replace(way);
    }

    /// Cuts every connection.
    pub fn cut(&self) {
        let way = *self.way.borrow();
        self.way.send_replace(Way::Closed);
        self.way.send_replace(way);
    }
}

async fn lead(mut stream: TcpStream, vector: SocketAddr, mut changes: watch::Receiver<Way>) {
    if *changes.borrow_and_update() == Way::Open {
        let Ok(mut behind) = TcpStream::connect(vector).await else { return };
        tokio::select! {
            _ = copy_bidirectional(&mut stream, &mut behind) => return,
            _ = changes.changed() => {}
        }
        if *changes.borrow() == Way::Silent {
            changes.changed().await.ok();
        }
    } else {
        changes.changed().await.ok();
    }
}
