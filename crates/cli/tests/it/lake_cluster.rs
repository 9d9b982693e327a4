//! Queries on lakes through a cluster: a scheduler and executors in processes of their own.

use std::cell::RefCell;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use borehole_testkit::{LakeCluster, Scratch, free_address};

use crate::lake::S3;
use crate::program::{Ended, corpus, program, run, text, wait_for};

/// A scheduler and two executors; `prepare` may add to the commands of executors.
fn cluster(prepare: impl Fn(&mut Command)) -> LakeCluster {
    LakeCluster::start(|| program(&["lake"]), 2, prepare).unwrap()
}

fn ask(cluster: &LakeCluster, arguments: &[&str]) -> Ended {
    run(&[&["lake"], arguments, &["--cluster", cluster.url()]].concat())
}

/// A lake with profiles and traces of all kinds.
fn lake_of_all_kinds(scratch: &Scratch) -> String {
    let path = text(&scratch.path("lake")).to_owned();
    let files = [
        "rbt/daemon_worker.rbt",
        "rbt/annotations.rbt",
        "trc/in/real_032_cpu.bin.gz",
        "rbt/realistic_54k_ts.rbt",
    ];
    for (file, service) in files.map(corpus).iter().zip(["shop", "web", "api", "bulk"]) {
        run(&["lake", "add", &path, file, "--service", service, "--at", "2026-11-01T12:00Z"]).done();
    }
    path
}

const QUESTIONS: [&str; 7] = [
    "SELECT service, sum(value) AS n FROM samples GROUP BY service ORDER BY service",
    "SELECT function, sum(self) AS self, sum(total) AS total FROM functions GROUP BY 1 ORDER BY 3 DESC, 2 DESC, 1 LIMIT 20",
    "SELECT folded(stack) AS stack, value FROM profiles WHERE service = 'web' ORDER BY time, 1",
    "SELECT label(labels, 'uri') AS uri, count(*) AS n FROM samples GROUP BY 1 ORDER BY 1",
    "SELECT leaf(stack) AS leaf, root(stack) AS root, depth(stack) AS depth FROM stacks ORDER BY 1, 2, 3 LIMIT 50",
    "SELECT name, count(*) AS n, max(duration_ns) AS longest FROM spans GROUP BY name ORDER BY name",
    "SELECT service, samples, clock FROM sources ORDER BY service",
];

#[test]
fn a_cluster_gives_the_answers_of_one_machine() {
    let scratch = Scratch::new();
    let lake = lake_of_all_kinds(&scratch);
    let cluster = cluster(|_| ());
    for question in QUESTIONS {
        let expected = run(&["lake", "query", &lake, question, "--csv"]).quietly();
        let answer = ask(&cluster, &["query", &lake, question, "--csv"]).quietly();
        assert_eq!(String::from_utf8(answer), String::from_utf8(expected), "{question}");
    }
    let mut named = vec![vec!["top", &lake], vec!["top", &lake, "--service", "web", "--limit", "0"]];
    named.push(vec!["trend", &lake, "main", "--json"]);
    named.push(vec!["diff", &lake, "--before", "2026-10-30..2026-11-01", "--after", "2026-11-01..", "--csv"]);
    for question in named {
        let expected = run(&[&["lake"], &*question].concat());
        let answer = ask(&cluster, &question);
        assert_eq!((answer.code, expected.code), (0, 0), "{question:?}");
        assert_eq!(answer.stderr, expected.stderr, "{question:?}");
        assert_eq!(answer.stdout, expected.stdout, "{question:?}");
    }
    let folded = |ended: Ended| {
        let mut lines: Vec<_> = String::from_utf8(ended.done()).unwrap().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let expected = folded(run(&["lake", "top", &lake, "--service", "shop", "--to", "folded"]));
    assert_eq!(folded(ask(&cluster, &["top", &lake, "--service", "shop", "--to", "folded"])), expected);
    let error = ask(&cluster, &["query", &lake, "SELECT nothing FROM samples"]).failed();
    assert!(error.contains("nothing"), "{error}");
}

/// A lake of files without common stacks.
fn lake_of_many_stacks(scratch: &Scratch) -> String {
    let path = text(&scratch.path("lake")).to_owned();
    for file in 0..6 {
        let stacks: String = (0..2000).map(|n| format!("main;f{};g{file}x{n} 1\n", n % 50)).collect();
        let name = scratch.write(&format!("{file}.folded"), stacks.as_bytes());
        run(&["lake", "add", &path, text(&name), "--service", &format!("service-{file}")]).done();
    }
    path
}

/// A query that takes seconds: a cross join of samples and stacks.
const LONG: &str = "SELECT count(*) AS n, sum(samples.value * depth) AS products FROM samples \
                    JOIN (SELECT depth(stack) AS depth FROM stacks) ON samples.value < depth";

/// Whether an executor has results of a query in this folder or below.
fn holds_part(folder: &Path) -> bool {
    // Folders may disappear meanwhile.
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .any(|path| path.extension().is_some_and(|extension| extension == "arrow") || holds_part(&path))
}

/// How long a query may take on a busy machine before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(400);

/// The output of a query, which fits in a pipe. One that hangs fails with the log of the scheduler.
fn ended(mut query: Child, cluster: &LakeCluster) -> Ended {
    let deadline = Instant::now() + PATIENCE;
    while query.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            query.kill().unwrap();
            panic!("no answer after {PATIENCE:?}; the scheduler's log: {}", cluster.log());
        }
        thread::sleep(Duration::from_millis(20));
    }
    query.wait_with_output().unwrap().into()
}

#[test]
fn a_killed_executor_changes_no_answer() {
    let scratch = Scratch::new();
    let lake = lake_of_many_stacks(&scratch);
    let folders = RefCell::new(Vec::new());
    let mut cluster = cluster(|executor| {
        let mut folders = folders.borrow_mut();
        let folder = scratch.path(&format!("executor-{}", folders.len()));
        fs::create_dir(&folder).unwrap();
        executor.env("TMPDIR", &folder);
        folders.push(folder);
    });
    let mut asked = program(&["lake", "query", &lake, LONG, "--csv", "--cluster", cluster.url()]);
    let mut asked = asked.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The results of the first parts are still needed, and the other parts take seconds.
    let executor = wait_for(|| folders.borrow().iter().position(|folder| holds_part(folder)));
    cluster.kill_executor(executor).unwrap();
    assert!(asked.try_wait().unwrap().is_none(), "the query ended before anything was killed");
    let ended = ended(asked, &cluster);
    // 12,000 samples times 12,000 stacks of three frames.
    assert_eq!(String::from_utf8(ended.done()).unwrap(), "n,products\r\n144000000,432000000\r\n");
}

#[test]
fn a_missing_scheduler_is_named() {
    let scratch = Scratch::new();
    let lake = text(&scratch.path("lake")).to_owned();
    run(&["lake", "add", &lake, &corpus("rbt/daemon_worker.rbt")]).done();
    let ask = |address: &str| {
        run(&["lake", "query", &lake, "SELECT sum(value) FROM samples", "--cluster", address]).failed()
    };
    let nobody = format!("df://{}", free_address().unwrap());
    let error = ask(&nobody);
    assert!(error.contains(&nobody), "{error}");
    let error = ask("127.0.0.1");
    assert!(
        error.contains("expected the address of a scheduler, df://HOST:PORT, found 127.0.0.1"),
        "{error}"
    );
}

#[test]
fn partial_results_are_private() {
    let scratch = Scratch::new();
    let _cluster = cluster(|executor| {
        executor.env("TMPDIR", scratch.folder());
    });
    let modes = wait_for(|| {
        let folders =
            fs::read_dir(scratch.folder()).unwrap().map(|folder| folder.unwrap().metadata().unwrap());
        let modes: Vec<_> =
            folders.map(|folder| format!("{:o}", folder.permissions().mode() & 0o777)).collect();
        (modes.len() == 2).then_some(modes)
    });
    assert_eq!(modes, ["700", "700"]);
}

#[test]
fn executors_read_storage_with_credentials_of_their_own() {
    let Some(server) = S3::start() else { return };
    let lake = "s3://fleet/clustered";
    server.lake(&["add", lake, &corpus("rbt/daemon_worker.rbt"), "--service", "shop"]).done();
    let cluster = cluster(|executor| server.let_in(executor));
    let top = ["top", lake, "--csv"];
    let expected = server.lake(&top).quietly();
    assert_eq!(server.lake(&[&top[..], &["--cluster", cluster.url()]].concat()).quietly(), expected);
}

#[test]
fn cluster_programs_have_help_with_examples() {
    for command in ["scheduler", "executor"] {
        let help = String::from_utf8(run(&["lake", command, "--help"]).done()).unwrap();
        assert!(help.contains("Examples:") && help.contains("--cluster df://"), "{help}");
    }
    let error = run(&["lake", "scheduler", "--executor-timeout", "5"]).failed();
    assert!(error.contains("5 is not in 10.."), "{error}");
}
