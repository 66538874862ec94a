//! Giving the sockets to a successor, and getting them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::Pipeline;
use crate::receive::Group;
use crate::systemd::{self, Notifier};
use crate::takeover::OfferedGroup;

impl Pipeline {
    /// What a successor gets. Until it reads, or is given up, a stop leaves in the sockets what they hold.
    ///
    /// # Errors
    /// When there are no more descriptors.
    pub fn offer(&self) -> io::Result<Vec<OfferedGroup>> {
        let offer = |group: &Group| {
            let (address, steering) = (group.listener.address, group.steering);
            group.offer().map(|(sockets, claim)| OfferedGroup { address, steering, sockets, claim })
        };
        self.groups.iter().map(offer).collect()
    }

    /// Has the service manager keep the sockets for the next start, where it can.
    pub fn keep(&self, notifier: &Notifier) {
        systemd::keep(notifier, &self.groups);
    }

    /// The successor did not become one.
    pub fn take_back(&self) {
        self.groups.iter().for_each(|group| group.take_back());
    }

    /// The successor reads these groups, by their numbers: they are not read here any more once this is stopped. Returns
    /// the kernel's drop counters of each group as they are in the books.
    pub fn give(&self, groups: &[usize]) -> Vec<Vec<u32>> {
        self.view.read_sockets();
        for (number, group) in self.groups.iter().enumerate() {
            match groups.contains(&number) {
                true => group.give(),
                false => group.take_back(),
            }
        }
        let mut counted = self.view.counted_drops().into_iter();
        self.groups.iter().map(|group| counted.by_ref().take(group.sockets.len()).collect()).collect()
    }

    /// Has the workers read no more, and waits until none does. They may still have a batch that waits for room.
    pub async fn silence(&self) {
        self.view.set_stopping();
        self.end_reading();
        for member in self.groups.iter().flat_map(|group| &group.sockets) {
            while member.is_being_read() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }

    /// This process is the successor, and the one before reads no more: its last sight of the kernel's drop counters.
    pub fn succeed(&self, drops: &[(SocketAddr, Vec<u32>)]) {
        self.groups.iter().for_each(Group::join);
        self.view.count_drops_from(drops);
        self.shared.begin.open();
    }

    /// To be called when the process before has nothing left: what it had on disk, and where order is kept all that it had, comes
    /// before what is here.
    pub fn let_go(&self) -> impl FnOnce() + use<> {
        let (queue, alone) = (Arc::clone(&self.shared.queue), Arc::clone(&self.shared.alone));
        move || {
            queue.let_go();
            alone.open();
        }
    }
}
