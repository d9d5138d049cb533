//! The one place that names the synchronisation primitives, so that the loom models run the very code
//! that ships. Under `--cfg loom` the atomics, locks and threads are loom's; otherwise they are std's.
//!
//! `Arc` is std's in both worlds: wakers need std's, and what the models check are the protocols, not the
//! reference counts of `Arc`.

pub(crate) use std::sync::Arc;

#[cfg(not(loom))]
pub(crate) use std::{
    sync::{Mutex, MutexGuard, atomic},
    thread,
};

#[cfg(loom)]
pub(crate) use loom::{
    sync::{Mutex, MutexGuard, atomic},
    thread,
};

#[cfg(loom)]
pub(crate) use loom::cell::UnsafeCell;

/// `std::cell::UnsafeCell` with loom's closure-style access, so that a model sees each access begin and end.
#[cfg(not(loom))]
#[derive(Debug)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// A SeqCst read-modify-write before this, and a SeqCst load after it, are in the one order of all that is SeqCst, which
/// is as good as a fence between them; and on most processors it is one. Loom orders fences alone.
#[inline]
pub(crate) fn fence_in_models() {
    if cfg!(loom) {
        atomic::fence(atomic::Ordering::SeqCst);
    }
}

/// Locks `mutex`. No user code ever runs under a lock of ours (I6), so a poisoned lock can only mean that an
/// allocation or an assertion of ours failed; the data is whole either way.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Keeps `T` on cache lines of its own: two workers never write the same line by accident. 128 bytes, since
/// processors fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct CachePadded<T>(pub(crate) T);

impl<T> std::ops::Deref for CachePadded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
