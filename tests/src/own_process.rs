//! Tests of what a whole process has: threads, descriptors, CPU time. Other tests beside them would disturb.

use std::process::Command;
#[cfg(target_os = "linux")]
use std::time::Duration;

const CHILD: &str = "RUNTIME_TEST_CHILD";

/// Runs `body` in a process of its own: this test binary, asked for the one test that is named `test`, which must
/// be the one that calls this.
///
/// # Panics
///
/// If `body` does there, with what it printed.
pub fn in_own_process(test: &str, body: impl FnOnce()) {
    if std::env::var(CHILD).is_ok_and(|child| child == test) {
        return body();
    }
    let program = std::env::current_exe().expect("the path of this binary");
    let output = Command::new(program)
        .args([
            test,
            "--exact",
            "--nocapture",
            "--include-ignored",
            "--test-threads=1",
        ])
        .env(CHILD, test)
        .output()
        .expect("a child process");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && printed.contains("1 passed"),
        "{test} in its own process: {}\n{printed}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}

/// How many threads this process has.
#[cfg(target_os = "linux")]
pub fn threads_of_this_process() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").expect("/proc is mounted");
    threads.count()
}

/// How much CPU time this process has used.
#[cfg(target_os = "linux")]
pub fn cpu_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}
