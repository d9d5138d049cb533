//! Spawning with a name.

use std::future::Future;
use std::io;

use super::JoinHandle;
use crate::spawn::spawn_with;

/// Configures a task before it is spawned.
///
/// ```
/// # runtime::block_on(async {
/// let task = runtime::task::Builder::new().name("greeter").spawn(async { "hello" })?;
/// assert_eq!(task.await.unwrap(), "hello");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "a task builder does nothing until it spawns"]
pub struct Builder<'a> {
    name: Option<&'a str>,
}

impl<'a> Builder<'a> {
    /// A builder that sets nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The name that dumps and reports show beside the task's id. Need not be unique.
    pub fn name(mut self, name: &'a str) -> Self {
        self.name = Some(name);
        self
    }

    /// Spawns `future` on the current runtime, as [`spawn`](crate::spawn) does.
    ///
    /// # Errors
    ///
    /// None today; the result leaves room for a limit on tasks.
    ///
    /// # Panics
    ///
    /// If there is no runtime on this thread.
    #[track_caller]
    pub fn spawn<F>(self, future: F) -> io::Result<JoinHandle<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        Ok(match self.name {
            Some(name) => spawn_with(future, Box::<str>::from(name)),
            None => spawn_with(future, ()),
        })
    }
}
