//! tokio: the multi-thread runtime with any number of workers, and the current-thread runtime.

use std::future::Future;
use std::io;
use std::net::TcpListener;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::{JoinHandle, JoinSet};

use super::{AsyncPeer, Handles, Peer, Spawner};

/// The multi-thread runtime with `W` workers; the root is polled beside them.
pub(crate) type TokioMulti<const W: usize> = Tokio<W, false>;

/// The current-thread runtime: everything runs in `block_on`.
pub(crate) type TokioCurrent = Tokio<1, true>;

/// A runtime with `W` workers, or the current-thread one.
pub(crate) struct Tokio<const W: usize, const CURRENT: bool>(Runtime);

/// `tokio::spawn`, which finds the runtime by itself.
#[derive(Clone)]
pub(crate) struct TokioInside;

/// Unwraps what a `JoinHandle` gives.
pub(crate) struct TokioJoin<T>(JoinHandle<T>);

impl<const W: usize, const CURRENT: bool> Peer for Tokio<W, CURRENT> {
    const WORKERS: usize = W;

    fn name() -> String {
        if CURRENT {
            "tokio-ct".to_owned()
        } else {
            format!("tokio-mt{W}")
        }
    }

    fn start() -> Self {
        let mut builder = if CURRENT {
            Builder::new_current_thread()
        } else {
            Builder::new_multi_thread()
        };
        Tokio(
            builder
                .worker_threads(W)
                .enable_all()
                .build()
                .expect("tokio starts"),
        )
    }
}

impl<const W: usize, const CURRENT: bool> AsyncPeer for Tokio<W, CURRENT> {
    type Inside = TokioInside;
    type Outside = Handle;

    fn inside(&self) -> TokioInside {
        TokioInside
    }

    fn outside(&self) -> Handle {
        self.0.handle().clone()
    }

    fn block_on<F: Future>(&self, root: F) -> F::Output {
        self.0.block_on(root)
    }

    fn yield_now() -> impl Future<Output = ()> + Send + 'static {
        tokio::task::yield_now()
    }

    fn sleep(duration: Duration) -> impl Future<Output = ()> + Send + 'static {
        tokio::time::sleep(duration)
    }

    async fn timeout<F: Future<Output = ()> + Send>(duration: Duration, future: F) -> bool {
        tokio::time::timeout(duration, future).await.is_ok()
    }

    fn handles() -> impl Handles<TokioInside> + 'static {
        JoinSet::new()
    }

    async fn echo<const BUFFER: usize>(_: TokioInside, listener: TcpListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        loop {
            let (mut stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            drop(tokio::spawn(async move {
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

impl Spawner for TokioInside {
    type Join<T: Send + 'static> = TokioJoin<T>;

    fn spawn<F>(&self, future: F) -> TokioJoin<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        TokioJoin(tokio::spawn(future))
    }

    fn detach<F: Future<Output = ()> + Send + 'static>(&self, future: F) {
        drop(tokio::spawn(future));
    }
}

impl Spawner for Handle {
    type Join<T: Send + 'static> = TokioJoin<T>;

    fn spawn<F>(&self, future: F) -> TokioJoin<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        TokioJoin(Handle::spawn(self, future))
    }

    fn detach<F: Future<Output = ()> + Send + 'static>(&self, future: F) {
        drop(Handle::spawn(self, future));
    }
}

impl<T> Future for TokioJoin<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        Pin::new(&mut self.0)
            .poll(cx)
            .map(|output| output.expect("the task did not panic"))
    }
}

/// A plain set of futures does badly with tokio's handles: when the budget of a poll is used up, it asks
/// all the others that are ready in vain.
impl Handles<TokioInside> for JoinSet<()> {
    fn spawn<F>(&mut self, _: &TokioInside, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        JoinSet::spawn(self, future);
    }

    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match self.poll_join_next(cx) {
                Poll::Ready(Some(output)) => output.expect("the task did not panic"),
                Poll::Ready(None) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
