//! An orderly end: stop taking work, let what has begun finish, give up on what does not.
//!
//! Run it: `cargo run --release --example graceful_shutdown`, and wait 2 seconds or press Ctrl-C
//! (twice if you are in a hurry).

use std::pin::pin;
use std::time::Duration;

use examples::stop;
use futures::future;
use runtime::time;

/// How long the program runs if nobody stops it.
const RUN: Duration = Duration::from_secs(2);
/// How long the jobs that have begun may take to finish.
const DRAIN: Duration = Duration::from_secs(1);

fn main() -> std::io::Result<()> {
    let runtime = runtime::Runtime::new()?;

    runtime.block_on(async {
        // Dropping `take_jobs` is what stops new work from coming in; the jobs are tasks of their
        // own and go on.
        let stop = async {
            future::select(pin!(stop::ctrl_c()), pin!(time::sleep(RUN))).await;
        };
        future::select(pin!(take_jobs()), pin!(stop)).await;
    });

    println!("no more jobs; waiting up to {DRAIN:?} for those that have begun");
    let report = runtime.shutdown_timeout(DRAIN);
    println!(
        "the runtime has ended: {} finished, {} were cancelled, {} could not be stopped",
        report.finished,
        report.aborted,
        report.still_running.len()
    );
    for task in &report.still_running {
        println!("  still running, spawned at {}", task.location);
    }
    Ok(())
}

async fn take_jobs() {
    // Nobody awaits these: dropping a handle leaves its task to itself.
    runtime::spawn(stubborn());
    let mut arrivals = time::interval(Duration::from_millis(250));
    for number in 1_u32.. {
        arrivals.tick().await;
        runtime::spawn(job(number));
    }
}

async fn job(number: u32) {
    println!("job {number} begins");
    time::sleep(Duration::from_millis(600)).await;
    println!("job {number} is done");
}

/// Never finishes by itself. The shutdown drops it when the time is over, and with it all it holds.
async fn stubborn() {
    struct Held;
    impl Drop for Held {
        fn drop(&mut self) {
            println!("the stubborn job is dropped");
        }
    }

    let _held = Held;
    future::pending::<()>().await;
}
