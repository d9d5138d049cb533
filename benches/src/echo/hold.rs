//! A client that opens connections and does nothing more with them.

use std::io::{self, BufRead, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// For each line, a number, opens so many connections more and prints `open`; holds all until its input ends.
pub(crate) fn run(server: SocketAddr) -> io::Result<()> {
    let mut held = Vec::new();
    for line in io::stdin().lock().lines() {
        let more: usize = line?.parse().map_err(io::Error::other)?;
        for _ in 0..more {
            held.push(opened(server)?);
        }
        println!("open");
    }
    Ok(())
}

/// One that has had an answer: its task runs, and has waited before for what now never comes.
fn opened(server: SocketAddr) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(server)?;
    let mut byte = [b'h'];
    stream.write_all(&byte)?;
    stream.read_exact(&mut byte)?;
    Ok(stream)
}
