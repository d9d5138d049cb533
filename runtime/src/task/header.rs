//! What every task has in front of its future, whatever that is.

use std::mem::MaybeUninit;
use std::panic::Location;
use std::task::Waker;

use super::Id;
use super::raw::Vtable;
use super::registry::Key;
use super::state::State;
use crate::sync::UnsafeCell;
use crate::sync::atomic::AtomicU32;
use crate::sync::atomic::Ordering::Relaxed;

/// What every runnable thing starts with: a task's header, or a stack job of `join`. Queues hold pointers to
/// this.
#[repr(C)]
pub(crate) struct Prefix {
    pub(super) vtable: &'static Vtable,
    /// Coarse time of the worker that queued it, for the fork lane's late mode. Written by the holder of the
    /// permit alone; atomic because the holder changes.
    pub(super) stamp: AtomicU32,
    /// The registry's shard, where the header's `key` counts. Written as the stamp is.
    pub(super) shard: AtomicU32,
}

impl Prefix {
    pub(crate) fn new(vtable: &'static Vtable) -> Self {
        Self {
            vtable,
            stamp: AtomicU32::new(0),
            shard: AtomicU32::new(0),
        }
    }
}

/// The part of a task that does not depend on its future's type.
#[repr(C)]
pub(crate) struct Header {
    pub(super) prefix: Prefix,
    /// The registry's key within the shard, or [`UNREGISTERED`].
    pub(super) key: AtomicU32,
    pub(super) state: State,
    /// The scheduler, as `Arc::as_ptr` gave it, without a count (T6).
    pub(super) scheduler: *const (),
    pub(super) id: Id,
    pub(super) parent: Option<Id>,
    pub(super) location: &'static Location<'static>,
    pub(super) join_waker: UnsafeCell<MaybeUninit<Waker>>,
}

/// The key of a task that is in no registry.
pub(super) const UNREGISTERED: u32 = u32::MAX;

impl Header {
    pub(crate) fn id(&self) -> Id {
        self.id
    }

    pub(crate) fn parent(&self) -> Option<Id> {
        self.parent
    }

    pub(crate) fn location(&self) -> &'static Location<'static> {
        self.location
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.state.is_complete()
    }

    /// Where it stands in the registry; `None` if it is in none.
    pub(crate) fn registry_key(&self) -> Option<Key> {
        // Relaxed: written once, by the holder of the permit, which the state word hands on.
        let key = self.key.load(Relaxed);
        (key != UNREGISTERED).then(|| Key {
            shard: self.prefix.shard.load(Relaxed) as usize,
            index: key as usize,
        })
    }

    pub(crate) fn is_registered(&self) -> bool {
        self.key.load(Relaxed) != UNREGISTERED
    }

    pub(crate) fn set_registry_key(&self, shard: u32, key: usize) {
        let key = u32::try_from(key).ok().filter(|key| *key != UNREGISTERED);
        self.prefix.shard.store(shard, Relaxed);
        self.key
            .store(key.expect("2^32 tasks in one shard"), Relaxed);
    }

    /// Which scheduler it belongs to, as a number to compare.
    pub(crate) fn scheduler_address(&self) -> usize {
        self.scheduler.addr()
    }
}
