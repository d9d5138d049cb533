//! A long stream of bytes there and back, compared byte for byte.

use std::io;
use std::time::Instant;

use futures::future::try_join;
use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::Failure;
use crate::connections::connect;

const CHUNK: usize = 64 * 1024;

pub(crate) async fn run(address: &str, total: u64) -> Result<(), Failure> {
    let (reader, writer) = connect(address).await?.into_split();
    let start = Instant::now();
    // Both at once: a server that echoes stops reading when nobody takes its answers.
    try_join(send(writer, total), receive(reader, total))
        .await
        .map_err(|error| Failure::new(format_args!("the round trip failed: {error}")))?;
    let elapsed = start.elapsed();
    println!(
        "{total} bytes came back equal in {elapsed:.2?}, {:.1} MB/s each way",
        total as f64 / 1e6 / elapsed.as_secs_f64()
    );
    Ok(())
}

async fn send(mut writer: impl AsyncWrite + Unpin, total: u64) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    let mut sent = 0;
    while sent < total {
        let length = CHUNK.min(usize::try_from(total - sent).unwrap_or(CHUNK));
        for (byte, offset) in chunk[..length].iter_mut().zip(sent..) {
            *byte = byte_at(offset);
        }
        writer.write_all(&chunk[..length]).await?;
        sent += length as u64;
    }
    writer.close().await
}

/// Reads to the end, so that bytes too many are found as well.
async fn receive(mut reader: impl AsyncRead + Unpin, total: u64) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    let mut received = 0;
    loop {
        let length = reader.read(&mut chunk).await?;
        if length == 0 {
            break;
        }
        for (byte, offset) in chunk[..length].iter().zip(received..) {
            if offset >= total || *byte != byte_at(offset) {
                return Err(wrong(format!("the byte at {offset} is not the one sent")));
            }
        }
        received += length as u64;
    }
    if received < total {
        return Err(wrong(format!(
            "the server closed the connection after {received} bytes"
        )));
    }
    Ok(())
}

/// Any stretch of the stream can be told from any other (the mixing step is SplitMix64's).
fn byte_at(offset: u64) -> u8 {
    let mut word = (offset / 8).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (word ^ (word >> 31)).to_le_bytes()[(offset % 8) as usize]
}

fn wrong(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
