//! The limit of open descriptors: one is needed for each connection.

/// Raises this process's limit to `wanted`, or as far as the system lets it, and says what came of
/// it. A process usually starts with 1024.
pub fn raise_limit(wanted: u64) {
    match imp::raise_limit(wanted) {
        Ok(Some((before, now))) if now < wanted => println!(
            "limit of open descriptors: {now} (was {before}); more than that takes `ulimit -Hn`"
        ),
        Ok(Some((before, now))) if now > before => {
            println!("limit of open descriptors: {now} (was {before})");
        }
        Ok(_) => {}
        Err(error) => eprintln!("the limit of open descriptors stays as it is: {error}"),
    }
}

#[cfg(unix)]
mod imp {
    use std::io;

    use rustix::process::{Resource, getrlimit, setrlimit};

    /// The limit before and after, or `None` where there is none.
    pub(super) fn raise_limit(wanted: u64) -> io::Result<Option<(u64, u64)>> {
        let mut limit = getrlimit(Resource::Nofile);
        let Some(before) = limit.current else {
            return Ok(None);
        };
        if before >= wanted {
            return Ok(Some((before, before)));
        }
        let now = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
        limit.current = Some(now);
        setrlimit(Resource::Nofile, limit)?;
        Ok(Some((before, now)))
    }
}

#[cfg(not(unix))]
mod imp {
    use std::io;

    /// Windows has no such limit.
    pub(super) fn raise_limit(_wanted: u64) -> io::Result<Option<(u64, u64)>> {
        Ok(None)
    }
}
