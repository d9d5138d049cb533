//! What a worker is polling right now, for whoever asks which task is stuck.
//!
//! A task in its first poll is in no queue and not in the registry. So each worker says in plain atomics what it
//! polls, by value: nobody needs a reference to the cell, and a poll pays a few stores.
//!
//! # Safety
//!
//! Part of the task cell only in that a reference travels through an atomic: what is stored is always a
//! `&'static Location`, so what is read is one.
#![allow(unsafe_code)]

use std::num::NonZeroU64;
use std::panic::Location;
use std::ptr;

use super::Id;
use super::header::Header;
use crate::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use crate::sync::atomic::{AtomicPtr, AtomicU64, fence};

/// One worker's current task. Written by whoever has the seat.
#[derive(Debug)]
pub(crate) struct Running {
    /// 0 between polls. Ids are never used again, so one that has not changed says that nothing has.
    id: AtomicU64,
    parent: AtomicU64,
    location: AtomicPtr<Location<'static>>,
}

/// What is known of a running task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) id: Id,
    pub(crate) parent: Option<Id>,
    pub(crate) location: &'static Location<'static>,
}

impl Running {
    pub(crate) fn new() -> Self {
        Self {
            id: AtomicU64::new(0),
            parent: AtomicU64::new(0),
            location: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// A poll of `task` begins.
    pub(crate) fn begin(&self, task: &Header) {
        let parent = task.parent.map_or(0, |parent| parent.get().get());
        self.parent.store(parent, Relaxed);
        self.location
            .store(ptr::from_ref(task.location).cast_mut(), Relaxed);
        // Release pairs with the first Acquire in `get`: who sees the id sees what belongs to it.
        self.id.store(task.id.get().get(), Release);
    }

    /// The poll is over.
    pub(crate) fn end(&self) {
        self.id.store(0, Relaxed);
        // Pairs with the fence in `get`: who sees what the next `begin` writes sees that this id is gone.
        fence(Release);
    }

    /// Whether a poll is under way. For the thread that has the seat.
    pub(crate) fn is_some(&self) -> bool {
        self.id.load(Relaxed) != 0
    }

    /// What is being polled, if anything is, and was for as long as this took.
    pub(crate) fn get(&self) -> Option<Seen> {
        let id = self.id.load(Acquire);
        let parent = self.parent.load(Relaxed);
        let location = self.location.load(Relaxed);
        fence(Acquire);
        if self.id.load(Relaxed) != id {
            return None;
        }
        let id = Id::from_raw(NonZeroU64::new(id)?);
        let parent = NonZeroU64::new(parent).map(Id::from_raw);
        // SAFETY: null, or from a `&'static Location` in `begin`.
        let location = unsafe { location.as_ref() }?;
        Some(Seen {
            id,
            parent,
            location,
        })
    }
}
