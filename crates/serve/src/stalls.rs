//! Connections whose clients do not read what they asked for.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A connection that ends with an error once nothing of a write has been taken for some time.
pub(crate) struct StallLimit<S> {
    stream: S,
    longest: Duration,
    /// Runs while a write waits for the client.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> StallLimit<S> {
    /// Limits how long the client of `stream` may take none of an answer.
    pub(crate) fn new(stream: S, longest: Duration) -> Self {
        Self { stream, longest, waiting: None }
    }

    /// Passes on what became of a write, or ends it if it has waited too long.
    fn limited<T>(&mut self, at: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let longest = self.longest;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(longest)));
        ready!(waiting.as_mut().poll(at));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client reads nothing")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallLimit<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        at: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(at, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallLimit<S> {
    fn poll_write(mut self: Pin<&mut Self>, at: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(at, bytes);
        self.limited(at, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        at: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(at, pieces);
        self.limited(at, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, at: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(at);
        self.limited(at, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, at: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(at);
        self.limited(at, ended)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::runtime::Runtime;

    use super::*;

    #[test]
    fn a_client_that_reads_nothing_is_left() {
        Runtime::new().unwrap().block_on(async {
            let (own, _silent) = duplex(16);
            let mut own = StallLimit::new(own, Duration::from_millis(50));
            let error = own.write_all(&[0; 100]).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        });
    }

    #[test]
    fn a_client_that_reads_gets_everything() {
        Runtime::new().unwrap().block_on(async {
            let (own, mut client) = duplex(16);
            let mut own = StallLimit::new(own, Duration::from_secs(600));
            let reading = tokio::spawn(async move {
                let mut bytes = Vec::new();
                client.read_to_end(&mut bytes).await.unwrap();
                bytes.len()
            });
            own.write_all(&[0; 1000]).await.unwrap();
            own.shutdown().await.unwrap();
            drop(own);
            assert_eq!(reading.await.unwrap(), 1000);
        });
    }
}
