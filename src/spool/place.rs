//! Where a spool is, or will be.

use std::sync::{Arc, OnceLock};

use super::Spool;

/// A place for a spool: empty where nothing overflows, and for as long as the process before has the directory.
#[derive(Debug, Default)]
pub struct Place(OnceLock<Arc<Spool>>);

impl Place {
    /// The spool, if it is there.
    pub fn get(&self) -> Option<&Arc<Spool>> {
        self.0.get()
    }

    /// Puts it there; a second one is let go of.
    pub fn fill(&self, spool: Arc<Spool>) {
        self.0.set(spool).ok();
    }
}

impl From<Option<Arc<Spool>>> for Place {
    fn from(spool: Option<Arc<Spool>>) -> Self {
        let place = Self::default();
        spool.into_iter().for_each(|spool| place.fill(spool));
        place
    }
}
