//! The sockets' handles of the system, for what is not offered here. Whoever uses one must leave it
//! open and non-blocking.

#[cfg(unix)]
mod unix {
    use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

    use crate::net::{TcpListener, TcpSocket, TcpStream};

    impl AsFd for TcpListener {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.os().as_fd()
        }
    }

    impl AsRawFd for TcpListener {
        fn as_raw_fd(&self) -> RawFd {
            self.os().as_raw_fd()
        }
    }

    impl AsFd for TcpStream {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.os().as_fd()
        }
    }

    impl AsRawFd for TcpStream {
        fn as_raw_fd(&self) -> RawFd {
            self.os().as_raw_fd()
        }
    }

    impl AsFd for TcpSocket {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.os().as_fd()
        }
    }

    impl AsRawFd for TcpSocket {
        fn as_raw_fd(&self) -> RawFd {
            self.os().as_raw_fd()
        }
    }
}

#[cfg(windows)]
mod windows {
    use std::os::windows::io::{AsRawSocket, AsSocket, BorrowedSocket, RawSocket};

    use crate::net::{TcpListener, TcpSocket, TcpStream};

    impl AsSocket for TcpListener {
        fn as_socket(&self) -> BorrowedSocket<'_> {
            self.os().as_socket()
        }
    }

    impl AsRawSocket for TcpListener {
        fn as_raw_socket(&self) -> RawSocket {
            self.os().as_raw_socket()
        }
    }

    impl AsSocket for TcpStream {
        fn as_socket(&self) -> BorrowedSocket<'_> {
            self.os().as_socket()
        }
    }

    impl AsRawSocket for TcpStream {
        fn as_raw_socket(&self) -> RawSocket {
            self.os().as_raw_socket()
        }
    }

    impl AsSocket for TcpSocket {
        fn as_socket(&self) -> BorrowedSocket<'_> {
            self.os().as_socket()
        }
    }

    impl AsRawSocket for TcpSocket {
        fn as_raw_socket(&self) -> RawSocket {
            self.os().as_raw_socket()
        }
    }
}
