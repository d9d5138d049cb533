//! This workspace's runtime, as a newcomer would build it.

use std::future::Future;
use std::io;
use std::net::TcpListener;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::{AsyncReadExt, AsyncWriteExt};
use runtime::task::JoinHandle;
use runtime::{Builder, Handle, Runtime};

use super::{AsyncPeer, CountingPeer, Counts, JoinPeer, Peer, Spawner};

/// The runtime with `W` workers and as many threads of its own.
pub(crate) type OursMulti<const W: usize> = Ours<W, false>;

/// The runtime with one worker, the thread in `block_on`, and no thread of its own.
pub(crate) type OursCurrent = Ours<1, true>;

/// The runtime with `W` workers, with or without threads of its own.
pub(crate) struct Ours<const W: usize, const CURRENT: bool>(Runtime);

/// `runtime::spawn`, which finds the runtime by itself.
#[derive(Clone)]
pub(crate) struct OursInside;

/// Unwraps what a `JoinHandle` gives.
pub(crate) struct OursJoin<T>(JoinHandle<T>);

impl<const W: usize, const CURRENT: bool> Peer for Ours<W, CURRENT> {
    const WORKERS: usize = W;

    fn name() -> String {
        if CURRENT {
            "ours-ct".to_owned()
        } else {
            format!("ours-{W}")
        }
    }

    fn start() -> Self {
        Ours(
            Builder::new()
                .worker_threads(W)
                .background_threads(!CURRENT)
                .build()
                .expect("the runtime starts"),
        )
    }
}

impl<const W: usize, const CURRENT: bool> AsyncPeer for Ours<W, CURRENT> {
    type Inside = OursInside;
    type Outside = Handle;

    fn inside(&self) -> OursInside {
        OursInside
    }

    fn outside(&self) -> Handle {
        self.0.handle().clone()
    }

    fn block_on<F: Future>(&self, root: F) -> F::Output {
        self.0.block_on(root)
    }

    fn yield_now() -> impl Future<Output = ()> + Send + 'static {
        runtime::task::yield_now()
    }

    fn sleep(duration: Duration) -> impl Future<Output = ()> + Send + 'static {
        runtime::time::sleep(duration)
    }

    async fn timeout<F: Future<Output = ()> + Send>(duration: Duration, future: F) -> bool {
        runtime::time::timeout(duration, future).await.is_ok()
    }

    async fn echo<const BUFFER: usize>(_: OursInside, listener: TcpListener) -> io::Result<()> {
        let listener = runtime::net::TcpListener::from_std(listener)?;
        loop {
            let (mut stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            drop(runtime::spawn(async move {
                let mut buffer = [0; BUFFER];
                loop {
                    match stream.read(&mut buffer).await {
                        Ok(0) | Err(_) => return,
                        Ok(length) if stream.write_all(&buffer[..length]).await.is_err() => return,
                        Ok(_) => {}
                    }
                }
            }));
        }
    }
}

impl<const W: usize, const CURRENT: bool> JoinPeer for Ours<W, CURRENT> {
    fn install<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        super::in_task(self, async { job() })
    }

    fn join<A: Send, B: Send>(
        left: impl FnOnce() -> A + Send,
        right: impl FnOnce() -> B + Send,
    ) -> (A, B) {
        runtime::join(left, right)
    }
}

impl Spawner for OursInside {
    type Join<T: Send + 'static> = OursJoin<T>;

    fn spawn<F>(&self, future: F) -> OursJoin<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        OursJoin(runtime::spawn(future))
    }

    fn detach<F: Future<Output = ()> + Send + 'static>(&self, future: F) {
        drop(runtime::spawn(future));
    }
}

impl Spawner for Handle {
    type Join<T: Send + 'static> = OursJoin<T>;

    fn spawn<F>(&self, future: F) -> OursJoin<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        OursJoin(Handle::spawn(self, future))
    }

    fn detach<F: Future<Output = ()> + Send + 'static>(&self, future: F) {
        drop(Handle::spawn(self, future));
    }
}

impl<T> Future for OursJoin<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        Pin::new(&mut self.0)
            .poll(cx)
            .map(|output| output.expect("the task did not panic"))
    }
}

impl<const W: usize, const CURRENT: bool> CountingPeer for Ours<W, CURRENT> {
    fn counts(&self) -> Counts {
        let metrics = self.0.metrics();
        Counts {
            parks: metrics.total(|worker| worker.parks),
            unparks: metrics.total(|worker| worker.unparks),
            empty_unparks: metrics.total(|worker| worker.empty_unparks),
            steals: metrics.total(|worker| worker.steals + worker.slot_steals),
        }
    }
}
