//! What can be used as an address, and trying each address it stands for.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use super::resolver;
use sealed::{Addresses, Resolve};

/// What can be used as an address: socket addresses, `"host:port"`, and `(host, port)`.
///
/// Numeric addresses are used as they are. A host name is looked up by the system's resolver on a
/// thread of its own, so that a slow name server delays nobody else. This trait cannot be
/// implemented outside of this crate.
pub trait ToSocketAddrs: Resolve {}

pub(crate) mod sealed {
    use std::io;
    use std::net::SocketAddr;

    /// What an address stands for, as far as it can be said at once.
    #[derive(Debug)]
    pub enum Addresses {
        /// These.
        Known(Vec<SocketAddr>),
        /// Those that the name has, which has to be looked up.
        Named {
            /// The name.
            host: String,
            /// The port, for each of them.
            port: u16,
        },
    }

    /// The hidden half of [`ToSocketAddrs`](super::ToSocketAddrs).
    pub trait Resolve {
        /// What can be said without waiting.
        fn addresses(&self) -> io::Result<Addresses>;
    }
}

/// Looks up the addresses of a `"host:port"` or `(host, port)`.
///
/// Cancel safe: an abandoned lookup ends in the background and its result is dropped.
///
/// # Errors
///
/// If the text is no address, the name cannot be resolved (the error names it), or no thread can be
/// started for the lookup.
///
/// ```no_run
/// # runtime::block_on(async {
/// for addr in runtime::net::lookup_host("localhost:80").await? {
///     println!("{addr}");
/// }
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
pub async fn lookup_host(host: impl ToSocketAddrs) -> io::Result<impl Iterator<Item = SocketAddr>> {
    Ok(resolve(host).await?.into_iter())
}

/// The last of several failures to use an address; what is reported when all have failed.
#[derive(Debug)]
pub(crate) struct LastFailure {
    doing: &'static str,
    error: Option<io::Error>,
}

impl LastFailure {
    /// None yet; `doing` says, in front of the address, what is attempted.
    pub(crate) fn new(doing: &'static str) -> LastFailure {
        LastFailure { doing, error: None }
    }

    /// Notes that `addr` failed with `error`.
    pub(crate) fn note(&mut self, addr: SocketAddr, error: io::Error) {
        let kind = error.kind();
        let explained = Explained {
            doing: self.doing,
            addr,
            error,
        };
        self.error = Some(io::Error::new(kind, explained));
    }

    /// The error to report.
    pub(crate) fn into_error(self) -> io::Error {
        self.error.unwrap_or_else(|| {
            let explained = format!("cannot {}: no address given", self.doing);
            io::Error::new(io::ErrorKind::InvalidInput, explained)
        })
    }
}

/// A failure with its address; the system's own error, which has the code, is its source.
#[derive(Debug)]
struct Explained {
    doing: &'static str,
    addr: SocketAddr,
    error: io::Error,
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: {}", self.doing, self.addr, self.error)
    }
}

impl Error for Explained {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}

/// All addresses that `target` stands for.
pub(crate) async fn resolve(target: impl ToSocketAddrs) -> io::Result<Vec<SocketAddr>> {
    let addresses = target.addresses()?;
    // Not kept while waiting, so that the future is `Send` whatever the target is.
    drop(target);
    match addresses {
        Addresses::Known(known) => Ok(known),
        Addresses::Named { host, port } => resolver::lookup(host, port).await,
    }
}

fn known(addr: impl Into<SocketAddr>) -> io::Result<Addresses> {
    Ok(Addresses::Known(vec![addr.into()]))
}

impl Resolve for SocketAddr {
    fn addresses(&self) -> io::Result<Addresses> {
        known(*self)
    }
}

impl Resolve for SocketAddrV4 {
    fn addresses(&self) -> io::Result<Addresses> {
        known(*self)
    }
}

impl Resolve for SocketAddrV6 {
    fn addresses(&self) -> io::Result<Addresses> {
        known(*self)
    }
}

impl Resolve for (IpAddr, u16) {
    fn addresses(&self) -> io::Result<Addresses> {
        known(*self)
    }
}

impl Resolve for (Ipv4Addr, u16) {
    fn addresses(&self) -> io::Result<Addresses> {
        known(*self)
    }
}

impl Resolve for (Ipv6Addr, u16) {
    fn addresses(&self) -> io::Result<Addresses> {
        known(*self)
    }
}

impl Resolve for [SocketAddr] {
    fn addresses(&self) -> io::Result<Addresses> {
        Ok(Addresses::Known(self.to_vec()))
    }
}

impl Resolve for Vec<SocketAddr> {
    fn addresses(&self) -> io::Result<Addresses> {
        self.as_slice().addresses()
    }
}

impl<const N: usize> Resolve for [SocketAddr; N] {
    fn addresses(&self) -> io::Result<Addresses> {
        self.as_slice().addresses()
    }
}

impl Resolve for (&str, u16) {
    fn addresses(&self) -> io::Result<Addresses> {
        let (host, port) = *self;
        match host.parse::<IpAddr>() {
            Ok(ip) => known((ip, port)),
            Err(_) => Ok(Addresses::Named {
                host: host.to_owned(),
                port,
            }),
        }
    }
}

impl Resolve for (String, u16) {
    fn addresses(&self) -> io::Result<Addresses> {
        (self.0.as_str(), self.1).addresses()
    }
}

impl Resolve for str {
    fn addresses(&self) -> io::Result<Addresses> {
        if let Ok(addr) = self.parse::<SocketAddr>() {
            return known(addr);
        }
        let host_and_port = self.rsplit_once(':').filter(|(host, _)| !host.is_empty());
        match host_and_port.and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?))) {
            Some(host_and_port) => host_and_port.addresses(),
            None => {
                let message = format!("{self:?} is not an address of the form \"host:port\"");
                Err(io::Error::new(io::ErrorKind::InvalidInput, message))
            }
        }
    }
}

impl Resolve for String {
    fn addresses(&self) -> io::Result<Addresses> {
        self.as_str().addresses()
    }
}

impl<T: Resolve + ?Sized> Resolve for &T {
    fn addresses(&self) -> io::Result<Addresses> {
        (**self).addresses()
    }
}

impl<T: Resolve + ?Sized> ToSocketAddrs for T {}

#[cfg(test)]
mod tests {
    use super::*;

    fn known_to(target: impl ToSocketAddrs) -> Vec<String> {
        match target.addresses() {
            Ok(Addresses::Known(known)) => known.iter().map(ToString::to_string).collect(),
            other => panic!("not known at once: {other:?}"),
        }
    }

    #[test]
    fn numeric_addresses_need_no_lookup() {
        assert_eq!(known_to("127.0.0.1:80"), ["127.0.0.1:80"]);
        assert_eq!(known_to("[::1]:80"), ["[::1]:80"]);
        assert_eq!(known_to(("127.0.0.1", 80)), ["127.0.0.1:80"]);
        assert_eq!(known_to(("::1", 80)), ["[::1]:80"]);
        assert_eq!(known_to((Ipv4Addr::LOCALHOST, 80)), ["127.0.0.1:80"]);
        assert_eq!(known_to(String::from("127.0.0.1:80")), ["127.0.0.1:80"]);
        let several = [
            "127.0.0.1:1".parse().unwrap(),
            "127.0.0.1:2".parse().unwrap(),
        ];
        assert_eq!(known_to(several), ["127.0.0.1:1", "127.0.0.1:2"]);
        assert_eq!(known_to(&several[..]).len(), 2);
    }

    #[test]
    fn names_need_one() {
        let named = ("somewhere".to_owned(), 80).addresses().unwrap();
        assert!(matches!(named, Addresses::Named { ref host, port: 80 } if host == "somewhere"));
        let named = "somewhere:80".addresses().unwrap();
        assert!(matches!(named, Addresses::Named { ref host, port: 80 } if host == "somewhere"));
    }

    #[test]
    fn what_is_no_address_is_quoted_in_the_error() {
        for text in [
            "",
            "host",
            ":80",
            "host:",
            "host:port",
            "host:65536",
            "127.0.0.1",
        ] {
            let error = text.addresses().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
        }
    }
}
