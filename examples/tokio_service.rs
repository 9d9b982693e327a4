//! A service that records itself, as `docs/start-tokio.md` shows it. One of its requests computes on a worker for too long.

use std::io;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

#[borehole_tokio::main]
async fn main() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    borehole_tokio::spawn(serve(listener));
    let mut clients = borehole_tokio::JoinSet::new();
    for number in 0..100 {
        clients.spawn(async move { ask(TcpStream::connect(address).await?, number).await });
    }
    while let Some(answer) = clients.join_next().await {
        answer??;
    }
    Ok(())
}

async fn serve(listener: TcpListener) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        borehole_tokio::spawn(answer(stream));
    }
}

async fn answer(mut stream: TcpStream) -> io::Result<()> {
    let number = stream.read_u8().await?;
    tokio::time::sleep(Duration::from_millis(5)).await;
    if number == 42 {
        // Nothing else runs on this worker meanwhile.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(80) {}
    }
    stream.write_u8(number).await
}

async fn ask(mut stream: TcpStream, number: u8) -> io::Result<u8> {
    stream.write_u8(number).await?;
    stream.read_u8().await
}
