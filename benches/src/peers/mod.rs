//! The systems that are measured: what each must offer, and the one list of them.
//!
//! To add a system: a file here that implements [`Peer`] and what else it can do ([`AsyncPeer`],
//! [`ClosurePeer`], [`JoinPeer`]), and a line in the lists below. Rows need not know.

mod async_executor;
mod echo;
mod epoll;
mod ours;
mod pools;
mod rayon;
mod scaled;
mod smol;
mod tokio;
#[cfg(feature = "uring")]
mod uring;

use std::future::Future;
use std::io;
use std::net::TcpListener;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;

use self::async_executor::AsyncExecutor;
pub(crate) use self::echo::{EchoPeer, PerEchoPeer, each_echo};
use self::ours::{OursCurrent, OursMulti};
use self::pools::{BoundedDeques, ChaseLev, LockedDeques, OneQueue, Pool};
use self::rayon::Rayon;
pub(crate) use self::scaled::{each_counting, each_scaled};
pub(crate) use self::smol::ENVIRONMENT as SMOL_ENVIRONMENT;
use self::smol::Smol;
use self::tokio::{TokioCurrent, TokioMulti};

/// A system, started for one sample; dropping it ends its threads.
pub(crate) trait Peer: Sized + 'static {
    /// How many threads run tasks.
    const WORKERS: usize;

    /// Whether its threads stay for as long as the process. Every sample then has a process of its own,
    /// so that they are not in the way of the others.
    const PROCESS_WIDE: bool = false;

    /// Family and form, such as `tokio-mt2`. Names that begin with `tokio` are what `ours` is set
    /// beside.
    fn name() -> String;

    /// Starts it.
    fn start() -> Self;
}

/// A system that runs futures.
pub(crate) trait AsyncPeer: Peer {
    /// Spawns from within a task or the root, in the way that is usual there.
    type Inside: Spawner;
    /// Spawns from any thread.
    type Outside: Spawner;

    /// The way to spawn from within.
    fn inside(&self) -> Self::Inside;

    /// The way to spawn from outside.
    fn outside(&self) -> Self::Outside;

    /// Runs the root future; systems without threads of their own run their tasks meanwhile.
    fn block_on<F: Future>(&self, root: F) -> F::Output;

    /// Lets the other tasks run.
    fn yield_now() -> impl Future<Output = ()> + Send + 'static;

    /// Ready after `duration`.
    fn sleep(duration: Duration) -> impl Future<Output = ()> + Send + 'static;

    /// Waits for `future`, not longer than `duration`; whether it was in time.
    fn timeout<F: Future<Output = ()> + Send>(
        duration: Duration,
        future: F,
    ) -> impl Future<Output = bool> + Send;

    /// A set of handles, of the kind that is usual there.
    fn handles() -> impl Handles<Self::Inside> + 'static {
        FuturesUnordered::new()
    }

    /// Accepts connections for ever and sends back what each sends, a task for each, which holds a buffer of
    /// so many bytes.
    fn echo<const BUFFER: usize>(
        spawner: Self::Inside,
        listener: TcpListener,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static;
}

/// A way to spawn futures.
pub(crate) trait Spawner: Clone + Send + Sync + 'static {
    /// Waits for a task's output, and panics if the task did.
    type Join<T: Send + 'static>: Future<Output = T> + Send + Unpin + 'static;

    /// Spawns a task that somebody waits for.
    fn spawn<F>(&self, future: F) -> Self::Join<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static;

    /// Spawns a task that nobody waits for.
    fn detach<F>(&self, future: F)
    where
        F: Future<Output = ()> + Send + 'static;
}

/// Handles of tasks that run, taken out as the tasks finish.
pub(crate) trait Handles<S: Spawner>: Send {
    /// Spawns a task and keeps its handle.
    fn spawn<F>(&mut self, spawner: &S, future: F)
    where
        F: Future<Output = ()> + Send + 'static;

    /// Takes out those that have finished, as many as the system likes to give at once. Ready when none
    /// is left.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<()>;
}

impl<S: Spawner> Handles<S> for FuturesUnordered<S::Join<()>> {
    fn spawn<F>(&mut self, spawner: &S, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.push(spawner.spawn(future));
    }

    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match self.poll_next_unpin(cx) {
                Poll::Ready(Some(())) => {}
                Poll::Ready(None) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

/// A system that runs bare closures.
pub(crate) trait ClosurePeer: Peer {
    /// Spawns from within a closure.
    type Inside: ClosureSpawner;
    /// Spawns from any thread.
    type Outside: ClosureSpawner;

    /// The way to spawn from within.
    fn inside(&self) -> Self::Inside;

    /// The way to spawn from outside.
    fn outside(&self) -> Self::Outside;
}

/// A way to spawn closures.
pub(crate) trait ClosureSpawner: Clone + Send + Sync + 'static {
    /// Runs `job` some time.
    fn run(&self, job: impl FnOnce() + Send + 'static);
}

/// A system that forks closures and joins them again.
pub(crate) trait JoinPeer: Peer {
    /// Runs `job` on a worker and waits for it.
    fn install<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T;

    /// Runs both, in parallel if a worker has time.
    fn join<A: Send, B: Send>(
        left: impl FnOnce() -> A + Send,
        right: impl FnOnce() -> B + Send,
    ) -> (A, B);
}

/// A system that counts what its workers do, and tells by an interface that is stable.
pub(crate) trait CountingPeer: AsyncPeer {
    /// The sums over all workers since it was started.
    fn counts(&self) -> Counts;
}

/// What workers did.
#[derive(Clone, Copy)]
pub(crate) struct Counts {
    /// Times that one blocked.
    pub(crate) parks: u64,
    /// Times that one came back.
    pub(crate) unparks: u64,
    /// Times that one came back for nothing.
    pub(crate) empty_unparks: u64,
    /// Times that one took tasks from another.
    pub(crate) steals: u64,
}

/// Something that exists once for each asynchronous system, such as a row's program.
pub(crate) trait PerAsyncPeer {
    /// What it is.
    type Item;
    /// The one for system `P`.
    fn make<P: AsyncPeer>() -> Self::Item;
}

/// Something that exists once for each system that runs closures.
pub(crate) trait PerClosurePeer {
    /// What it is.
    type Item;
    /// The one for system `P`.
    fn make<P: ClosurePeer>() -> Self::Item;
}

/// Something that exists once for each system that forks and joins.
pub(crate) trait PerJoinPeer {
    /// What it is.
    type Item;
    /// The one for system `P`.
    fn make<P: JoinPeer>() -> Self::Item;
}

/// Something that exists once for each system that counts.
pub(crate) trait PerCountingPeer {
    /// What it is.
    type Item;
    /// The one for system `P`.
    fn make<P: CountingPeer>() -> Self::Item;
}

/// A system's name and workers, with what was made for it.
pub(crate) struct Entry<T> {
    /// The system.
    pub(crate) name: String,
    /// Its workers.
    pub(crate) workers: usize,
    /// Whether its threads stay for as long as the process.
    pub(crate) process_wide: bool,
    /// What was made for it.
    pub(crate) item: T,
}

/// One `T` for each asynchronous system.
pub(crate) fn each_async<T: PerAsyncPeer>() -> Vec<Entry<T::Item>> {
    fn entry<T: PerAsyncPeer, P: AsyncPeer>() -> Entry<T::Item> {
        named::<P, _>(T::make::<P>())
    }
    vec![
        entry::<T, TokioMulti<2>>(),
        entry::<T, TokioMulti<1>>(),
        entry::<T, TokioCurrent>(),
        entry::<T, AsyncExecutor<2>>(),
        entry::<T, AsyncExecutor<1>>(),
        entry::<T, Smol>(),
        entry::<T, OursMulti<2>>(),
        entry::<T, OursMulti<1>>(),
        entry::<T, OursCurrent>(),
    ]
}

/// One `T` for each system that runs closures.
pub(crate) fn each_closure<T: PerClosurePeer>() -> Vec<Entry<T::Item>> {
    fn entry<T: PerClosurePeer, P: ClosurePeer>() -> Entry<T::Item> {
        named::<P, _>(T::make::<P>())
    }
    vec![
        entry::<T, Rayon<2>>(),
        entry::<T, Rayon<1>>(),
        entry::<T, Pool<OneQueue, 2>>(),
        entry::<T, Pool<LockedDeques, 2>>(),
        entry::<T, Pool<BoundedDeques, 2>>(),
        entry::<T, Pool<ChaseLev, 2>>(),
        entry::<T, Pool<ChaseLev, 1>>(),
    ]
}

/// One `T` for each system that forks and joins.
pub(crate) fn each_join<T: PerJoinPeer>() -> Vec<Entry<T::Item>> {
    fn entry<T: PerJoinPeer, P: JoinPeer>() -> Entry<T::Item> {
        named::<P, _>(T::make::<P>())
    }
    vec![
        entry::<T, Rayon<2>>(),
        entry::<T, Rayon<1>>(),
        entry::<T, OursMulti<2>>(),
        entry::<T, OursMulti<1>>(),
        entry::<T, OursCurrent>(),
    ]
}

/// Forms of a peer that only the row `build_hello` has. Its `ours` and `smol` are not among them: as
/// whole names they would no longer mean all systems that begin so.
const BUILT: [&str; 2] = ["tokio-full", "tokio-rt"];

/// All systems' names.
pub(crate) fn names() -> Vec<String> {
    struct Nothing;
    impl PerAsyncPeer for Nothing {
        type Item = ();
        fn make<P: AsyncPeer>() {}
    }
    impl PerClosurePeer for Nothing {
        type Item = ();
        fn make<P: ClosurePeer>() {}
    }
    impl PerEchoPeer for Nothing {
        type Item = ();
        fn make<P: EchoPeer>() {}
    }
    // Every asynchronous system is one of those that serve.
    let entries = each_echo::<Nothing>()
        .into_iter()
        .chain(each_closure::<Nothing>())
        .chain(each_scaled::<Nothing>().into_iter().filter(is_larger));
    entries
        .map(|entry| entry.name)
        .chain(BUILT.map(str::to_owned))
        .collect()
}

/// Whether a system has more workers than those that take part in all rows.
fn is_larger<T>(entry: &Entry<T>) -> bool {
    entry.workers > 2
}

/// Runs `body` as a task, and waits for it from the root.
pub(crate) fn in_task<P, F>(peer: &P, body: F) -> F::Output
where
    P: AsyncPeer,
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let task = peer.outside().spawn(body);
    peer.block_on(task)
}

impl Counts {
    /// What was counted since `before`.
    pub(crate) fn since(self, before: Counts) -> Counts {
        Counts {
            parks: self.parks - before.parks,
            unparks: self.unparks - before.unparks,
            empty_unparks: self.empty_unparks - before.empty_unparks,
            steals: self.steals - before.steals,
        }
    }

    /// The share of parks that ended for nothing; none if nobody parked.
    pub(crate) fn empty_per_park(self) -> f64 {
        self.empty_unparks as f64 / self.parks.max(1) as f64
    }
}

fn named<P: Peer, T>(item: T) -> Entry<T> {
    Entry {
        name: P::name(),
        workers: P::WORKERS,
        process_wide: P::PROCESS_WIDE,
        item,
    }
}
