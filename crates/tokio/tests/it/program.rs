//! Programs that are set up by their environment, and dumps.

use std::fs;
use std::process::Command;
use std::time::Duration;
use std::{env, io};

use borehole_recorder::{Recorder, Settings};
use borehole_tokio::TokioRecorder;
use tokio::runtime::Builder;

use super::scratch::Scratch;
use super::trace::Seen;

fn settings(variables: &[(&str, &str)]) -> Settings {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Settings::from_variables(variables).unwrap()
}

#[borehole_tokio::main(flavor = "current_thread", name = "attribute")]
async fn recorded_main() -> io::Result<u32> {
    Ok(borehole_tokio::spawn(async { 7 }).await?)
}

/// Another process of this test binary that runs one test with these variables.
fn rerun(test: &str, variables: &[(&str, &str)]) -> std::process::Output {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", test, "--nocapture"])
        .env("BOREHOLE_TEST_RUN", "1")
        .envs(variables.iter().copied());
    command.output().unwrap()
}

#[test]
fn a_main_with_the_attribute_records_as_its_environment_says() {
    if env::var_os("BOREHOLE_TEST_RUN").is_some() {
        assert_eq!(recorded_main().unwrap(), 7);
        return;
    }
    let test = "program::a_main_with_the_attribute_records_as_its_environment_says";
    let folder = Scratch::new();
    let path = folder.folder().to_str().unwrap();
    let variables = [("BOREHOLE_TRACE_FOLDER", path), ("BOREHOLE_TRACE_SERVICE", "shop")];
    let output = rerun(test, &variables);
    assert!(output.status.success(), "{output:?}");
    let seen = Seen::in_folder(folder.folder());
    assert_eq!((seen.tasks().len(), seen.blocked_on().len()), (1, 1), "{seen:?}");
    assert_eq!((&*seen.metadata["service"], &*seen.metadata["runtime.attribute"]), ("shop", "0"));

    let off = Scratch::new();
    let path = off.folder().join("traces");
    let output = rerun(test, &[("BOREHOLE_TRACE_FOLDER", path.to_str().unwrap()), ("BOREHOLE_TRACE", "off")]);
    assert!(output.status.success() && !path.exists(), "{output:?}");

    let output = rerun(test, &[("BOREHOLE_TRACE_RING", "1")]);
    let said =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success() && said.contains("unknown setting BOREHOLE_TRACE_RING:"), "{said}");
    assert!(said.contains("BOREHOLE_TRACE=off turns recording off"), "{said}");
}

#[test]
fn a_long_poll_writes_the_ring() {
    let folder = Scratch::new();
    let path = folder.folder().to_str().unwrap();
    let variables = [
        ("BOREHOLE_TRACE_FOLDER", path),
        ("BOREHOLE_TRACE_RING_MIB", "8"),
        ("BOREHOLE_TRACE_LONG_POLL_MS", "40"),
    ];
    let mut builder = Builder::new_multi_thread();
    let files = || fs::read_dir(folder.folder()).unwrap().count();
    borehole_tokio::run_with(settings(&variables), "main", builder.worker_threads(1), |_| async {
        borehole_tokio::spawn(async { tokio::task::yield_now().await }).await.unwrap();
        assert_eq!(files(), 0, "nothing happened yet");
        borehole_tokio::spawn(async { std::thread::sleep(Duration::from_millis(60)) }).await.unwrap();
    })
    .unwrap();
    let seen = Seen::in_folder(folder.folder());
    let reason = &seen.metadata["dump.reason"];
    assert!(reason.starts_with("long poll of ") && reason.contains("tests/it/program.rs:"), "{reason}");
    assert_eq!(seen.tasks().len(), 2, "{seen:?}");
}

#[test]
fn a_setting_that_needs_a_feature_says_so() {
    if cfg!(feature = "allocations") {
        return;
    }
    let Err(error) = borehole_tokio::start(settings(&[("BOREHOLE_TRACE_ALLOCATIONS_KIB", "1")])) else {
        panic!("it is built without the feature");
    };
    assert!(error.to_string().contains("without the feature `allocations`"), "{error}");
}

#[test]
fn resources_are_measured() {
    let folder = Scratch::new();
    let recorder = Recorder::builder(folder.folder()).start().unwrap();
    let tokio = TokioRecorder::new(recorder.handle());
    let runtime = tokio.build("test", Builder::new_current_thread().enable_all()).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let _waiting = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    recorder.handle().add_resources().unwrap();
    runtime.block_on(async { tokio::time::sleep(Duration::from_millis(900)).await });
    drop(runtime);
    recorder.finish().unwrap();
    let (mut cpu_ns, mut pending) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder.folder()).unwrap() {
        let mut reader = borehole_recorder::trc::Reader::new(fs::File::open(entry.unwrap().path()).unwrap());
        let number = |value: Option<borehole_recorder::trc::Value<'_>>| {
            value.and_then(borehole_recorder::trc::Value::as_u64)
        };
        reader
            .for_each_event(|event| {
                cpu_ns.extend(number(event.value_of("user_cpu_ns")));
                if number(event.value_of("local_port")) == Some(port.into()) {
                    pending.extend(number(event.value_of("pending_connections")));
                }
            })
            .unwrap();
    }
    assert!(cpu_ns.len() >= 2 && cpu_ns.is_sorted() && cpu_ns[0] > 0, "{cpu_ns:?}");
    assert!(!pending.is_empty() && pending.iter().all(|pending| *pending == 1), "{pending:?}");
}
