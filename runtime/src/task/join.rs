//! (5) The handles to a task: await its output, abort it, ask about it.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};

use super::Id;
use super::refs::{OutputRef, TaskRef};
use crate::panic::Payload;

/// Owns the right to a task's output: a future of `Result<T, JoinError>`.
///
/// Dropping it detaches the task, which runs on. Awaiting is cancel safe: a handle that was polled and dropped
/// loses nothing but the output.
///
/// # Panics
///
/// When polled again after it was ready.
///
/// ```
/// # runtime::block_on(async {
/// let handle = runtime::spawn(async { panic!("oh") });
/// assert!(handle.await.unwrap_err().is_panic());
///
/// let handle = runtime::spawn(std::future::pending::<()>());
/// handle.abort();
/// assert!(handle.await.unwrap_err().is_cancelled());
/// # });
/// ```
pub struct JoinHandle<T> {
    output: OutputRef<T>,
}

/// Aborts a task from anywhere; does not keep its output.
#[derive(Clone)]
pub struct AbortHandle {
    task: TaskRef,
}

/// Why a task gave no output: it panicked, or it was cancelled (aborted, or caught by a shutdown).
pub struct JoinError {
    id: Id,
    failure: Failure,
}

/// As stored in the task's slot, hence small: one pointer.
pub(crate) enum Failure {
    Cancelled,
    /// Behind a lock, since a payload is not `Sync` and an error should be; boxed, since it is rare.
    Panicked(Box<Mutex<Payload>>),
}

impl Failure {
    pub(crate) fn panicked(payload: Payload) -> Self {
        Self::Panicked(Box::new(Mutex::new(payload)))
    }
}

impl<T> JoinHandle<T> {
    pub(crate) fn of(output: OutputRef<T>) -> Self {
        Self { output }
    }

    /// Cancels the task where it next runs: its future is dropped there, on a worker (a blocking job that has not
    /// begun, on a thread of that pool), never in this call. If it is complete, or completes first, nothing happens and its output stays. Started blocking jobs cannot be
    /// aborted: see [`spawn_blocking`](crate::spawn_blocking).
    pub fn abort(&self) {
        self.output.task().abort();
    }

    /// A handle that can abort the task and nothing else.
    pub fn abort_handle(&self) -> AbortHandle {
        AbortHandle {
            task: self.output.task().clone(),
        }
    }

    /// Whether the output is there (or was taken). After `abort` this becomes true only when the future has
    /// been dropped.
    pub fn is_finished(&self) -> bool {
        self.output.task().is_complete()
    }

    /// The task's id.
    pub fn id(&self) -> Id {
        self.output.task().id()
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        std::task::ready!(reactor::budget::poll_proceed(cx));
        let output = self.get_mut().output.poll(cx);
        if output.is_pending() {
            reactor::budget::refund();
        }
        output
    }
}

impl<T> Unpin for JoinHandle<T> {}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle")
            .field("id", &self.id())
            .finish_non_exhaustive()
    }
}

impl AbortHandle {
    /// As [`JoinHandle::abort`].
    pub fn abort(&self) {
        self.task.abort();
    }

    /// As [`JoinHandle::is_finished`].
    pub fn is_finished(&self) -> bool {
        self.task.is_complete()
    }

    /// The task's id.
    pub fn id(&self) -> Id {
        self.task.id()
    }
}

impl fmt::Debug for AbortHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AbortHandle")
            .field("id", &self.id())
            .finish()
    }
}

impl JoinError {
    pub(crate) fn new(id: Id, failure: Failure) -> Self {
        Self { id, failure }
    }

    /// The task was aborted, or its runtime was shut down before it completed.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.failure, Failure::Cancelled)
    }

    /// The task panicked.
    pub fn is_panic(&self) -> bool {
        matches!(self.failure, Failure::Panicked(_))
    }

    /// The panic's payload, for [`std::panic::resume_unwind`].
    ///
    /// # Panics
    ///
    /// If the task did not panic; [`JoinError::try_into_panic`] gives the error back instead.
    #[track_caller]
    pub fn into_panic(self) -> Box<dyn Any + Send + 'static> {
        self.try_into_panic()
            .expect("`JoinError::into_panic` on a task that was cancelled")
    }

    /// The panic's payload, or the error itself if the task did not panic.
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send + 'static>, Self> {
        match self.failure {
            Failure::Panicked(payload) => Ok(payload
                .into_inner()
                .unwrap_or_else(|poisoned| poisoned.into_inner())),
            Failure::Cancelled => Err(self),
        }
    }

    /// The id of the task that failed.
    pub fn id(&self) -> Id {
        self.id
    }

    /// The panic's message, where it is text (as that of `panic!` is). A copy: it is written out under no lock (I6).
    fn message(&self) -> Option<String> {
        let Failure::Panicked(payload) = &self.failure else {
            return None;
        };
        let payload = payload
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let text = payload.downcast_ref::<&'static str>();
        text.map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_cancelled() {
            return write!(f, "task {} was cancelled", self.id);
        }
        match self.message() {
            Some(message) => write!(f, "task {} panicked with message {message:?}", self.id),
            None => write!(f, "task {} panicked", self.id),
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_cancelled() {
            return write!(f, "JoinError::Cancelled({:?})", self.id);
        }
        match self.message() {
            Some(message) => write!(f, "JoinError::Panic({:?}, {message:?}, ...)", self.id),
            None => write!(f, "JoinError::Panic({:?}, ...)", self.id),
        }
    }
}

impl std::error::Error for JoinError {}

impl From<JoinError> for io::Error {
    fn from(error: JoinError) -> Self {
        let kind = if error.is_cancelled() {
            io::ErrorKind::Interrupted
        } else {
            io::ErrorKind::Other
        };
        io::Error::new(kind, error)
    }
}
