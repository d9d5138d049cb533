//! Values that say when and where they were dropped.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};

use runtime::task;

/// Counts the [`Counted`] values made from it. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct Drops(Arc<Mutex<Vec<Drop1>>>);

/// One drop.
#[derive(Clone, Copy, Debug)]
struct Drop1 {
    thread: ThreadId,
    task: Option<task::Id>,
}

/// A value, and on the heap, so that dropping it twice or using it after shows under a checker too.
#[derive(Debug)]
pub struct Counted<T = ()> {
    /// What it carries.
    pub value: T,
    on_heap: Box<u64>,
    drops: Drops,
}

impl Drops {
    /// A count of zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// A value whose drop counts here.
    pub fn counted<T>(&self, value: T) -> Counted<T> {
        Counted {
            value,
            on_heap: Box::new(0x5EED),
            drops: self.clone(),
        }
    }

    /// A guard whose drop counts here.
    pub fn guard(&self) -> Counted {
        self.counted(())
    }

    /// How many were dropped.
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    /// On which threads, in order.
    pub fn threads(&self) -> Vec<ThreadId> {
        self.lock().iter().map(|drop| drop.thread).collect()
    }

    /// In which tasks, in order.
    pub fn tasks(&self) -> Vec<Option<task::Id>> {
        self.lock().iter().map(|drop| drop.task).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Drop1>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Drop for Counted<T> {
    fn drop(&mut self) {
        assert_eq!(*self.on_heap, 0x5EED, "dropped twice, or never made");
        *self.on_heap = 0;
        self.drops.lock().push(Drop1 {
            thread: thread::current().id(),
            task: task::try_id(),
        });
    }
}
