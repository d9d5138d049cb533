//! smol as most programs use it: its global executor, on two threads beside the root.
//!
//! The executor belongs to the process: its threads start with the first task, as many as the
//! environment says by then, and never end. Idle ones would drive the reactor that async-executor's rows
//! in the same process use too; hence a process for each sample, whose environment says how many.

use std::future::Future;
use std::io;
use std::net::TcpListener;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::{Either, select};
use futures::{AsyncReadExt, AsyncWriteExt};
use smol::{Async, Task, Timer};

use super::{AsyncPeer, Peer, Spawner};

/// What the environment of a process says about smol, for [`Smol::start`].
pub(crate) const ENVIRONMENT: (&str, &str) = ("SMOL_THREADS", "2");

/// The global executor.
pub(crate) struct Smol;

/// `smol::spawn`, which needs nothing.
#[derive(Clone)]
pub(crate) struct SmolSpawner;

/// A `Task` cancels what it stands for when dropped, as this does; detaching is asked for.
pub(crate) struct SmolJoin<T>(Task<T>);

impl Peer for Smol {
    const WORKERS: usize = 2;
    const PROCESS_WIDE: bool = true;

    fn name() -> String {
        "smol-2".to_owned()
    }

    fn start() -> Self {
        let (name, threads) = ENVIRONMENT;
        let said = std::env::var(name);
        assert_eq!(
            said.as_deref(),
            Ok(threads),
            "{name} says how many threads smol has"
        );
        Smol
    }
}

impl AsyncPeer for Smol {
    type Inside = SmolSpawner;
    type Outside = SmolSpawner;

    fn inside(&self) -> SmolSpawner {
        SmolSpawner
    }

    fn outside(&self) -> SmolSpawner {
        SmolSpawner
    }

    fn block_on<F: Future>(&self, root: F) -> F::Output {
        smol::block_on(root)
    }

    fn yield_now() -> impl Future<Output = ()> + Send + 'static {
        smol::future::yield_now()
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
        spawner: SmolSpawner,
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

impl Spawner for SmolSpawner {
    type Join<T: Send + 'static> = SmolJoin<T>;

    fn spawn<F>(&self, future: F) -> SmolJoin<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        SmolJoin(smol::spawn(future))
    }

    fn detach<F: Future<Output = ()> + Send + 'static>(&self, future: F) {
        smol::spawn(future).detach();
    }
}

impl<T> Future for SmolJoin<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        Pin::new(&mut self.0).poll(cx)
    }
}
