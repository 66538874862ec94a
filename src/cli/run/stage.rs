//! What stands before a run is ready, in an order in which nothing is read that a failure would lose; and its succession.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tracing::warn;

use super::super::{Failure, admin_port, supervise};
use crate::admin::Admin;
use crate::config::Config;
use crate::pipeline::Pipeline;
use crate::systemd::{self, Notifier};
use crate::takeover::{Event, Offer, Published, Released, Server, Successor, Taken};

/// How long a stop waits for what becomes of a take-over that is under way.
const OUTCOME: Duration = Duration::from_secs(10);

/// A pipeline that runs, and what is around it.
pub(super) struct Stage {
    pub(super) pipeline: Pipeline,
    pub(super) notifier: Arc<Notifier>,
    pub(super) succession: Succession,
}

impl Stage {
    /// Starts everything, around what was taken over. Ports and paths first: once datagrams are read, nothing may fail.
    pub(super) async fn set(config: &Config, mut taken: Option<Taken>) -> Result<Self, Failure> {
        let port = admin_port::bind(config, taken.as_mut())?;
        let server = config.takeover_path.as_deref().map(|path| {
            Server::bind(path).map_err(|error| {
                Failure::failed(format!(
                    "cannot listen for a successor at {}: {error}. Make the directory, or choose another --takeover-path",
                    path.display()
                ))
            })
        });
        let server = server.transpose()?;
        let inherited = taken.as_mut().map_or_else(systemd::inherited, Taken::take_groups);
        let pipeline = Pipeline::go_on(config, inherited, taken.is_some()).map_err(Failure::failed)?;
        let admin = port.and_then(|port| admin_port::serve(port, &pipeline));
        let before = match taken {
            Some(taken) => Some(succeed(&pipeline, taken).await?),
            None => None,
        };
        let succession = Succession::open(server, admin, before);
        let notifier = Arc::new(Notifier::from_environment());
        pipeline.keep(&notifier);
        notifier.ready(&supervise::status(&pipeline.view()));
        tokio::spawn(supervise::report(Arc::clone(&notifier), pipeline.view()));
        Ok(Self { pipeline, notifier, succession })
    }
}

/// Begins to read where the process before stops.
async fn succeed(pipeline: &Pipeline, taken: Taken) -> Result<Arc<Released>, Failure> {
    let reading = tokio::task::spawn_blocking(move || taken.reading());
    let released = Arc::new(reading.await.map_err(Failure::failed)?.map_err(Failure::failed)?);
    pipeline.succeed(&released.drops);
    let let_go = pipeline.let_go();
    let before = Arc::clone(&released);
    tokio::task::spawn_blocking(move || {
        before.wait_for_end();
        let_go();
    });
    Ok(released)
}

/// Where successors ask, and how far one has come.
pub(super) struct Succession {
    /// The name goes when the process ends.
    published: Option<Published>,
    /// The process before, where there is one: as long as this is there, it knows that this one lives.
    _before: Option<Arc<Released>>,
    events: Option<mpsc::Receiver<Event>>,
    admin: Option<Admin>,
    offered: bool,
}

impl Succession {
    fn open(server: Option<Server>, admin: Option<Admin>, before: Option<Arc<Released>>) -> Self {
        let (published, events) = match server.map(Server::publish) {
            Some(Ok((published, events))) => (Some(published), Some(events)),
            Some(Err(error)) => {
                warn!(%error, "nobody can take over from this process");
                (None, None)
            }
            None => (None, None),
        };
        Self { published, _before: before, events, admin, offered: false }
    }

    /// Completes when a successor reads.
    pub(super) async fn next(&mut self, pipeline: &Pipeline) -> Successor {
        loop {
            let event = match &mut self.events {
                Some(events) => events.recv().await,
                None => pending().await,
            };
            match event {
                Some(Event::Wanted(answer)) => {
                    let admin = self.admin.as_ref().and_then(|admin| admin.offer().ok());
                    let offer = pipeline.offer().map(|groups| Offer { groups, admin });
                    self.offered = true;
                    answer.send(offer).ok(); // it fails when the conversation is over, which says so by itself
                }
                Some(Event::Failed) => self.take_back(pipeline),
                Some(Event::Succeeded(successor)) => return successor,
                None => self.events = None,
            }
        }
    }

    /// What becomes of a take-over that is under way, when the process is to stop: the successor, or none.
    pub(super) async fn outcome(&mut self, pipeline: &Pipeline) -> Option<Successor> {
        let watch = async {
            while self.offered {
                if let Ok(successor) =
                    tokio::time::timeout(Duration::from_millis(20), self.next(pipeline)).await
                {
                    return Some(successor);
                }
            }
            None
        };
        let outcome = tokio::time::timeout(OUTCOME, watch).await;
        outcome.unwrap_or_else(|_| {
            self.take_back(pipeline);
            None
        })
    }

    fn take_back(&mut self, pipeline: &Pipeline) {
        self.offered = false;
        pipeline.take_back();
    }

    /// Has those refused who ask from now on.
    pub(super) fn close(&mut self) {
        self.events = None;
    }

    /// Waits until those are answered who have asked this process's admin port.
    pub(super) async fn answered(&self) {
        if let Some(admin) = &self.admin {
            admin.answered().await;
        }
    }

    /// Lets go of what the successor has.
    pub(super) async fn release(&self, pipeline: &Pipeline, successor: &Successor) {
        if let Some(admin) = &self.admin {
            admin.close();
        }
        if let Some(published) = &self.published {
            published.let_go();
        }
        let counted = pipeline.give(&successor.groups);
        pipeline.silence().await;
        successor.release(counted);
    }
}
