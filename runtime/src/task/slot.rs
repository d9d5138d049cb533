//! The next slot: one atomic pointer to the task that was last spawned or woken on a worker, tagged with its
//! origin, so that a displaced task finds its lane.
//!
//! Any worker may take from it; which thief does so, and when, is decided in `worker/steal.rs`.
//!
//! # Safety
//!
//! Part of the task cell: it stores permits as raw pointers. What `put` or `take` hands out was put in by
//! exactly one `put`, since both take by a single read-modify-write, and only into an empty slot, which nobody but
//! the owner can fill, is it stored without one: the permit changes hands, it is never copied.
#![allow(unsafe_code)]

use std::ptr::{self, NonNull};

use super::header::Prefix;
use super::refs::Runnable;
use crate::sync::atomic::AtomicPtr;
use crate::sync::atomic::Ordering::{AcqRel, Relaxed, Release};

/// How a task came into the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It was spawned from this worker: displaced, it goes to the fork lane.
    Spawned,
    /// It was woken from this worker: displaced, it goes to the fair lane.
    Woken,
}

/// The slot. Empty is null; the lowest bit says `Woken`.
#[derive(Debug)]
pub(crate) struct Slot(AtomicPtr<Prefix>);

const WOKEN: usize = 1;
const _: () = assert!(align_of::<Prefix>() > WOKEN, "the tag needs a free bit");

impl Slot {
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Puts `task` in and hands out the one it displaces. By the owner of the seat alone: so an empty slot stays
    /// empty for as long as this takes, and needs no read-modify-write. Release pairs with the Acquire of whoever
    /// takes it next, Acquire with the Release of whoever put the old one in.
    pub(crate) fn put(&self, task: Runnable, origin: Origin) -> Option<(Runnable, Origin)> {
        let raw = task.into_raw().as_ptr();
        let tagged = match origin {
            Origin::Spawned => raw,
            Origin::Woken => raw.map_addr(|address| address | WOKEN),
        };
        // Not in the models: loom looks at the last access to a place alone, and our own load would hide from it that
        // the store meets others' loads.
        if !cfg!(loom) && self.is_empty() {
            self.0.store(tagged, Release);
            return None;
        }
        Self::untag(self.0.swap(tagged, AcqRel))
    }

    /// Takes what is there. Orderings as in [`Slot::put`]; the look before it only saves the write.
    pub(crate) fn take(&self) -> Option<(Runnable, Origin)> {
        if self.is_empty() {
            None
        } else {
            Self::untag(self.0.swap(ptr::null_mut(), AcqRel))
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Relaxed).is_null()
    }

    fn untag(tagged: *mut Prefix) -> Option<(Runnable, Origin)> {
        let raw = NonNull::new(tagged.map_addr(|address| address & !WOKEN))?;
        let origin = if tagged.addr() & WOKEN == 0 {
            Origin::Spawned
        } else {
            Origin::Woken
        };
        // SAFETY: T1. The swap that produced `tagged` moved the permit out of the slot.
        Some((unsafe { Runnable::from_raw(raw) }, origin))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // At shutdown every task is complete, so nothing can be left here.
        debug_assert!(self.is_empty(), "a slot was dropped with a task in it");
    }
}
