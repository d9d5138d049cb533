//! async-executor, with async-io as its reactor and its way to block: what smol is made of.
//!
//! The calling thread is one of the `W` threads that run tasks, as `main` is with smol.

use std::future::Future;
use std::io;
use std::net::TcpListener;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use async_executor::{Executor, Task};
use async_io::{Async, Timer};
use futures::channel::oneshot;
use futures::future::{Either, select};
use futures::{AsyncReadExt, AsyncWriteExt};

use super::{AsyncPeer, Peer, Spawner};

/// An executor run by `W` threads. It is leaked, so that tasks reach it by a plain reference, as
/// they reach a static one.
pub(crate) struct AsyncExecutor<const W: usize> {
    executor: &'static Executor<'static>,
    threads: Vec<(oneshot::Sender<()>, JoinHandle<()>)>,
}

/// A `Task` cancels what it stands for when dropped, as this does; detaching is asked for.
pub(crate) struct AsyncExecutorJoin<T>(Task<T>);

/// Pending once.
struct Yield(bool);

impl<const W: usize> Peer for AsyncExecutor<W> {
    const WORKERS: usize = W;

    fn name() -> String {
        format!("asx-{W}")
    }

    fn start() -> Self {
        let executor: &'static Executor<'static> = Box::leak(Box::new(Executor::new()));
        let threads = (1..W).map(|_| {
            let (stop, stopped) = oneshot::channel::<()>();
            let thread = std::thread::spawn(move || {
                // Either way of ending is a wish to stop.
                let _ = async_io::block_on(executor.run(stopped));
            });
            (stop, thread)
        });
        AsyncExecutor {
            executor,
            threads: threads.collect(),
        }
    }
}

impl<const W: usize> Drop for AsyncExecutor<W> {
    fn drop(&mut self) {
        for (stop, thread) in self.threads.drain(..) {
            drop(stop);
            thread.join().expect("the executor does not panic");
        }
    }
}

impl<const W: usize> AsyncPeer for AsyncExecutor<W> {
    type Inside = &'static Executor<'static>;
    type Outside = &'static Executor<'static>;

    fn inside(&self) -> Self::Inside {
        self.executor
    }

    fn outside(&self) -> Self::Outside {
        self.executor
    }

    fn block_on<F: Future>(&self, root: F) -> F::Output {
        async_io::block_on(self.executor.run(root))
    }

    fn yield_now() -> impl Future<Output = ()> + Send + 'static {
        Yield(false)
    }

    fn sleep(duration: Duration) -> impl Future<Output = ()> + Send + 'static {
        // The time counts from here, as it does with the others.
        let timer = Timer::after(duration);
        async move {
            timer.await;
        }
    }

    async fn timeout<F: Future<Output = ()> + Send>(duration: Duration, future: F) -> bool {
        // The timer is made only if it is needed, as in the race of two futures that smol's
        // documentation shows.
        let timer = pin!(async { Timer::after(duration).await });
        matches!(select(pin!(future), timer).await, Either::Left(_))
    }

    async fn echo<const BUFFER: usize>(
        spawner: Self::Inside,
        listener: TcpListener,
    ) -> io::Result<()> {
        let listener = Async::new(listener)?;
        loop {
            let (mut stream, _) = listener.accept().await?;
            stream.get_ref().set_nodelay(true)?;
            spawner.detach(async move {
                let mut buffer = [0; BUFFER];
                loop {
                    match stream.read(&mut buffer).await {
                        Ok(0) | Err(_) => return,
                        Ok(length) if stream.write_all(&buffer[..length]).await.is_err() => return,
                        Ok(_) => {}
                    }
                }
            });
        }
    }
}

impl Spawner for &'static Executor<'static> {
    type Join<T: Send + 'static> = AsyncExecutorJoin<T>;

    fn spawn<F>(&self, future: F) -> AsyncExecutorJoin<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        AsyncExecutorJoin(Executor::spawn(self, future))
    }

    fn detach<F: Future<Output = ()> + Send + 'static>(&self, future: F) {
        Executor::spawn(self, future).detach();
    }
}

impl<T> Future for AsyncExecutorJoin<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
