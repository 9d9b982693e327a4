//! A server that records itself, and its clients: a real Tokio program that runs for some seconds.
//!
//! ```text
//! cargo run -p borehole-tokio --example tokio_server -- traces
//! borehole info traces/*
//! ```

#![expect(clippy::print_stdout, reason = "the program prints its result")]

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};
use std::{env, io};

use borehole_recorder::trc::TraceEvent;
use borehole_recorder::{Handle, Recorder};
use borehole_tokio::TokioRecorder;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;

/// An answer of the server, recorded in addition to the events of the runtime.
#[derive(TraceEvent)]
struct RequestEvent<'a> {
    #[traceevent(timestamp)]
    at_ns: u64,
    #[traceevent(pooled)]
    command: &'a str,
    answer_bytes: u32,
    #[traceevent(unit = "us")]
    took_us: u64,
}

const CLIENTS: u64 = 16;
const REQUESTS: u64 = 200;

fn main() -> io::Result<()> {
    let folder = env::args().nth(1).unwrap_or_else(|| "traces".to_owned());
    let recorder = Recorder::builder(&folder).metadata("service", "example").start()?;
    recorder.finish_on_signals()?;
    let tokio = TokioRecorder::new(recorder.handle());
    let runtime = tokio.build("main", Builder::new_multi_thread().worker_threads(2).enable_all())?;
    let answers = runtime.block_on(serve(&tokio, &recorder.handle()))?;
    drop(runtime);
    let summary = recorder.finish()?;
    println!("{answers} answers, {} events in {folder}, {} lost", summary.events, summary.lost_events);
    Ok(())
}

/// Serves until all clients have their answers, and returns the number of answers.
async fn serve(tokio: &TokioRecorder, handle: &Handle) -> io::Result<u64> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| tokio.spawn(async move { ask(TcpStream::connect(address).await?, client).await }))
        .collect();
    for _ in 0..CLIENTS {
        let (stream, _) = listener.accept().await?;
        tokio.spawn(answer(stream, handle.clone()));
    }
    let mut answers = 0;
    for client in clients {
        answers += client.await??;
    }
    Ok(answers)
}

/// Sends all requests of a client, and returns the number of answers.
async fn ask(stream: TcpStream, client: u64) -> io::Result<u64> {
    let mut stream = BufReader::new(stream);
    let mut answer = String::new();
    for request in 0..REQUESTS {
        let command = if (client + request).is_multiple_of(5) { "sum" } else { "echo" };
        stream.write_all(format!("{command} {request}\n").as_bytes()).await?;
        answer.clear();
        stream.read_line(&mut answer).await?;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(REQUESTS)
}

/// Answers one client until it disconnects.
async fn answer(stream: TcpStream, handle: Handle) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while stream.read_line(&mut line).await? > 0 {
        let begun = Instant::now();
        let (command, argument) = line.trim_end().split_once(' ').unwrap_or(("", ""));
        let answer = match command {
            "sum" => (0..=argument.parse::<u64>().unwrap_or(0) * 1_000).sum::<u64>().to_string(),
            _ => argument.to_owned(),
        };
        stream.write_all(format!("{answer}\n").as_bytes()).await?;
        handle.record_now(|at_ns| RequestEvent {
            at_ns,
            command,
            answer_bytes: u32::try_from(answer.len()).unwrap_or(u32::MAX),
            took_us: u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX),
        });
        line.clear();
    }
    Ok(())
}
