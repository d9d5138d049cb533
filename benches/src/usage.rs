//! What a stretch of work cost besides its wall time: processor time, context switches, memory; and
//! what others took of the machine meanwhile.

use std::fs;
use std::mem::MaybeUninit;
use std::time::{Duration, Instant};

/// What this process, all its threads together, has used up since it began.
#[derive(Clone, Copy)]
pub(crate) struct Usage {
    /// Processor time, in user and kernel mode.
    pub(crate) cpu: Duration,
    /// Context switches, voluntary or not.
    pub(crate) switches: u64,
}

impl Usage {
    /// The figures up to now.
    pub(crate) fn now() -> Usage {
        let usage = resource_usage(libc::RUSAGE_SELF);
        Usage {
            cpu: duration(usage.ru_utime) + duration(usage.ru_stime),
            switches: (usage.ru_nvcsw + usage.ru_nivcsw) as u64,
        }
    }

    /// What was used since `self` was read.
    pub(crate) fn spent(self) -> Usage {
        let now = Usage::now();
        Usage {
            cpu: now.cpu.saturating_sub(self.cpu),
            switches: now.switches - self.switches,
        }
    }
}

/// Processor time of all living threads of another process, from the scheduler's own accounts:
/// `/proc/PID/stat` counts in steps of 10 ms, too coarse for a sample of half a second.
pub(crate) fn cpu_of_process(pid: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let nanos: u64 = threads
        .filter_map(|thread| fs::read_to_string(thread.path().join("schedstat")).ok())
        .filter_map(|line| line.split_whitespace().next()?.parse::<u64>().ok())
        .sum();
    Duration::from_nanos(nanos)
}

/// Resident memory of this process in bytes.
pub(crate) fn resident_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("/proc is mounted");
    let pages: u64 = statm
        .split_whitespace()
        .nth(1)
        .and_then(|field| field.parse().ok())
        .expect("statm has a second field");
    pages * rustix::param::page_size() as u64
}

/// Resident memory of another process in bytes, counted page by page: the kernel's running total, which
/// `statm` shows, may be off by some dozens of pages for each core.
pub(crate) fn resident_bytes_of(pid: u32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))
        .expect("the process lives, and the kernel counts pages");
    let kibibytes: u64 = rollup
        .lines()
        .find_map(|line| line.strip_prefix("Rss:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .expect("smaps_rollup has a line for it");
    kibibytes * 1024
}

/// Watches what else the machine does while a row is measured.
pub(crate) struct Neighbours {
    since: Instant,
    machine: Duration,
    own: Duration,
}

impl Neighbours {
    /// Watches from now on.
    pub(crate) fn watch() -> Neighbours {
        Neighbours {
            since: Instant::now(),
            machine: machine_busy(),
            own: own_cpu(),
        }
    }

    /// The share of the machine, 0 to 1, that others took since then: other processes, and other
    /// guests of the same host as far as the kernel knows. Processes started by this one count as
    /// its own once they have been waited for.
    pub(crate) fn share(&self) -> f64 {
        let others = (machine_busy() - self.machine).saturating_sub(own_cpu() - self.own);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        others.as_secs_f64() / (self.since.elapsed().as_secs_f64() * cores as f64)
    }
}

/// Busy time of all cores since the machine started, in steps of 10 ms.
fn machine_busy() -> Duration {
    let text = fs::read_to_string("/proc/stat").expect("/proc is mounted");
    let fields = text
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(1);
    let ticks: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
    // user, nice, system, irq, softirq, steal; without idle and iowait, and without guest, which
    // user has in it.
    let busy: u64 = [0, 1, 2, 5, 6, 7]
        .iter()
        .filter_map(|index| ticks.get(*index))
        .sum();
    Duration::from_secs(busy) / rustix::param::clock_ticks_per_second() as u32
}

fn own_cpu() -> Duration {
    let cpu = |usage: libc::rusage| duration(usage.ru_utime) + duration(usage.ru_stime);
    cpu(resource_usage(libc::RUSAGE_SELF)) + cpu(resource_usage(libc::RUSAGE_CHILDREN))
}

fn resource_usage(whose: libc::c_int) -> libc::rusage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a live `rusage`, which is all that `getrusage` writes to.
    let status = unsafe { libc::getrusage(whose, usage.as_mut_ptr()) };
    assert_eq!(
        status, 0,
        "getrusage of the own process or its children cannot fail"
    );
    // SAFETY: `rusage` is plain integers, zeroed above, so that any bytes written are a value.
    unsafe { usage.assume_init() }
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
}
