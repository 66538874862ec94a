//! A value that is replaced while others use it.

use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};
use std::sync::{Arc, Mutex, PoisonError};

/// What is in force, and how often that changed: those who use it often compare the number, which costs one load.
#[derive(Debug)]
pub struct Live<T> {
    generation: AtomicU64,
    value: Mutex<Arc<T>>,
}

impl<T> Live<T> {
    /// The first value, of generation 0.
    pub fn new(value: T) -> Self {
        Self { generation: AtomicU64::new(0), value: Mutex::new(Arc::new(value)) }
    }

    /// Puts a value in force.
    pub fn replace(&self, value: T) {
        let mut current = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(value);
        self.generation.fetch_add(1, Release);
    }

    /// The generation in force.
    pub fn generation(&self) -> u64 {
        self.generation.load(Acquire)
    }

    /// The value in force, and its generation.
    pub fn get(&self) -> (u64, Arc<T>) {
        let current = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        (self.generation(), Arc::clone(&current))
    }
}
