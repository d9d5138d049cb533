//! What differs between systems in `net`, in one place.

use std::io;

/// Whether `error` says that the process or the system has no descriptor, or no memory for a socket, left.
pub(crate) fn is_descriptor_limit(error: &io::Error) -> bool {
    error
        .raw_os_error()
        .is_some_and(|code| DESCRIPTOR_LIMIT.contains(&code))
}

/// Whether `error`, from connecting a non-blocking socket, says that it is under way.
pub(crate) fn is_connect_under_way(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == CONNECT_UNDER_WAY
}

/// Whether a listener may take over an address that connections of an earlier process linger on:
/// on unix that takes an option; on Windows the option would let others take over a live address.
pub(crate) const LISTENERS_REUSE_ADDRESS: bool = cfg!(unix);

#[cfg(unix)]
const DESCRIPTOR_LIMIT: [i32; 4] = [
    rustix::io::Errno::MFILE.raw_os_error(),
    rustix::io::Errno::NFILE.raw_os_error(),
    rustix::io::Errno::NOBUFS.raw_os_error(),
    rustix::io::Errno::NOMEM.raw_os_error(),
];
#[cfg(unix)]
const CONNECT_UNDER_WAY: Option<i32> = Some(rustix::io::Errno::INPROGRESS.raw_os_error());

/// WSAEMFILE and WSAENOBUFS; Windows has no limit of the whole system.
#[cfg(not(unix))]
const DESCRIPTOR_LIMIT: [i32; 2] = [10024, 10055];
#[cfg(not(unix))]
const CONNECT_UNDER_WAY: Option<i32> = None;
