//! A complete executor on the standard library alone, to show what one is. No `runtime` in it.
//!
//! A task is a boxed future with a queue to go back to. Its waker puts it there; the executor takes
//! tasks from the queue and polls them, and sleeps while the queue is empty. What `runtime` adds:
//! several threads and fair queues, cheaper tasks, handles, timers, sockets, an orderly end.
//!
//! Run it: `cargo run --release --example tiny_executor`

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

struct Task {
    /// `None` once it is done. The lock is never contended: a task is polled by one thread, the
    /// executor's. It only makes `Task` shareable without unsafe code.
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    queue: Sender<Arc<Task>>,
}

impl Wake for Task {
    /// To wake a task is to queue it. A task woken twice is polled twice: needless, but harmless.
    fn wake(self: Arc<Self>) {
        let queue = self.queue.clone();
        // This fails when the executor is gone; then there is nobody to run the task.
        queue.send(self).ok();
    }
}

/// Spawns tasks on the executor.
#[derive(Clone)]
struct Spawner {
    queue: Sender<Arc<Task>>,
}

impl Spawner {
    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        let future = Mutex::new(Some(Box::pin(future) as _));
        let queue = self.queue.clone();
        Arc::new(Task { future, queue }).wake();
    }
}

/// Runs tasks until none is left: a waiting task is kept by its waker, and each task holds a sender
/// of the queue, so the queue closes when the last task and the last `Spawner` are gone.
fn run(queue: Receiver<Arc<Task>>) {
    while let Ok(task) = queue.recv() {
        let waker = Waker::from(Arc::clone(&task));
        let mut slot = task.future.lock().unwrap_or_else(PoisonError::into_inner);
        // The lock is free while the future runs, so that the future may do whatever it likes.
        let Some(mut future) = slot.take() else {
            continue;
        };
        drop(slot);
        if future
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
        {
            *task.future.lock().unwrap_or_else(PoisonError::into_inner) = Some(future);
        }
    }
}

fn main() {
    let (sender, queue) = channel();
    let spawner = Spawner { queue: sender };

    for name in ["first", "second"] {
        spawner.spawn(async move {
            for step in 1..=3 {
                println!("{name} task, step {step}");
                yield_now().await;
            }
        });
    }
    let inner = spawner.clone();
    spawner.spawn(async move {
        sleep(Duration::from_millis(100)).await;
        inner.spawn(async { println!("a task spawned by a task, after 100 ms") });
    });

    drop(spawner);
    run(queue);
    println!("no task is left");
}

/// Lets the other tasks go first: wakes itself, which puts it at the end of the queue.
async fn yield_now() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

/// Whatever is slow keeps the waker and wakes the task when it is done: here, a thread. (A reactor
/// does this for all timers and sockets of a program at once.)
async fn sleep(duration: Duration) {
    let over = Arc::new(AtomicBool::new(false));
    let mut started = false;
    poll_fn(|context| {
        if over.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        if !std::mem::replace(&mut started, true) {
            let (over, waker) = (Arc::clone(&over), context.waker().clone());
            thread::spawn(move || {
                thread::sleep(duration);
                // First the news, then the wake: the poll that follows has to see it (the store
                // pairs with the load above).
                over.store(true, Ordering::Release);
                waker.wake();
            });
        }
        Poll::Pending
    })
    .await
}
