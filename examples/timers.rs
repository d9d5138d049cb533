//! Sleeping, intervals and what they do about missed ticks, time limits.
//!
//! Run it: `cargo run --release --example timers`

use std::time::Duration;

use runtime::time::{self, Instant, MissedTickBehavior};

const PERIOD: Duration = Duration::from_millis(100);

#[runtime::main]
async fn main() {
    let start = Instant::now();

    time::sleep(PERIOD).await;
    say(start, "slept for 100 ms");

    // Sleeps of several tasks pass side by side.
    let sleepers: Vec<_> = (0..1000)
        .map(|_| runtime::spawn(time::sleep(PERIOD)))
        .collect();
    for sleeper in sleepers {
        sleeper.await.expect("a sleep does not panic");
    }
    say(start, "1000 tasks slept for 100 ms, all at once");

    // A time limit gives the output, or drops the future and gives an error.
    let quick = time::timeout(PERIOD, async { 42 }).await;
    assert_eq!(quick, Ok(42));
    let slow = time::timeout(PERIOD, time::sleep(Duration::from_secs(3600))).await;
    say(
        start,
        &format!("an hour's sleep within a limit: {}", slow.unwrap_err()),
    );

    // The first tick is due at once. A tick that is missed because the task was busy comes late
    // (Burst), moves the ones after it (Delay) or is left out (Skip).
    for behavior in [
        MissedTickBehavior::Burst,
        MissedTickBehavior::Delay,
        MissedTickBehavior::Skip,
    ] {
        let mut interval = time::interval(PERIOD);
        interval.set_missed_tick_behavior(behavior);
        let first = interval.tick().await;
        time::sleep(PERIOD * 5 / 2).await;
        let mut ticks = Vec::new();
        for _ in 0..4 {
            interval.tick().await;
            ticks.push(first.elapsed().as_millis());
        }
        say(
            start,
            &format!("busy for 250 ms, then ticks at {ticks:?} ms ({behavior:?})"),
        );
    }
}

fn say(start: Instant, what: &str) {
    println!("[{:>5} ms] {what}", start.elapsed().as_millis());
}
