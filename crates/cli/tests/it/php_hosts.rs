//! PHP in other programs: a web server, its own debugger, and a program that embeds it.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, thread};

use borehole_testkit::{Scratch, peers};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::program::{run, text, wait_for};

/// A script that works for half a minute, unless it is ended.
const BUSY: &[u8] = b"<?php
function slow_query(float $end) { $sum = 0; while (microtime(true) < $end) { $sum += crc32('x'); } return $sum; }
function page() { slow_query(microtime(true) + 30); }
page();
";

const REQUEST: &[u8] = b"<?php
function slow_query(float $end) { $sum = 0; while (microtime(true) < $end) { $sum += crc32('x'); } return $sum; }
echo slow_query(microtime(true) + 0.05);
";

/// A program that is asked to end when the test is over.
struct Host(Child);

impl Host {
    fn start(mut command: Command) -> Self {
        // When Apache is asked to end, it signals its whole process group.
        command.process_group(0);
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn id(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.0.id().try_into().unwrap()), Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

/// Checks that a running script is visible in the program called `name`, with the name of its PHP interface.
fn assert_seen_in(name: &str, interface: &str) {
    let scratch = Scratch::new();
    let Some(peer) = peers::peer(name) else { return };
    let mut command = peer.command();
    command.arg(scratch.write("busy.php", BUSY));
    let host = Host::start(command);
    let stack = ["stack", "-p", &host.id()];
    let frames = ["slow_query", "page", "<main>"];
    let is_busy =
        || Some(run(&stack)).filter(|ended| String::from_utf8_lossy(&ended.stdout).contains("slow_query"));
    let shown = String::from_utf8(wait_for(is_busy).done()).unwrap();
    let places = frames.map(|frame| shown.find(frame).unwrap_or_else(|| panic!("{frame}: {shown}")));
    assert!(places.is_sorted(), "{shown}");
    let said = String::from_utf8(run(&["doctor", "-p", &host.id()]).done()).unwrap();
    assert!(said.contains(&format!("NTS ({interface})")), "{said}");
    let recorded = scratch.path("busy.rbt");
    run(&["record", "-p", &host.id(), "--rate", "200", "--samples", "50", "-o", text(&recorded)]).done();
    let folded = String::from_utf8(run(&["convert", "--to", "folded", text(&recorded)]).done()).unwrap();
    assert!(folded.lines().count() > 0, "{folded}");
    for line in folded.lines() {
        let names: Vec<_> = line.split(';').map(|frame| frame.split([' ', ':']).next().unwrap()).collect();
        // The embedding program runs code of its own around the script.
        assert!(names.windows(3).any(|names| names == ["<main>", "page", "slow_query"]), "{line}");
    }
}

#[test]
fn a_script_in_the_debugger_is_seen() {
    assert_seen_in("phpdbg", "phpdbg");
}

#[test]
fn a_script_in_a_program_that_embeds_php_is_seen() {
    assert_seen_in("php-embedding", "embed");
}

/// Starts a web server with two workers on a free port.
fn start_apache(scratch: &Scratch) -> Option<(Host, u16)> {
    let peer = peers::peer("apache")?;
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let folder = scratch.folder().display();
    let settings = format!(
        "ServerRoot /usr/lib/apache2\nServerName localhost\nPidFile {folder}/pid\nErrorLog {folder}/log\nListen 127.0.0.1:{port}\n\
         LoadModule mpm_prefork_module modules/mod_mpm_prefork.so\n\
         LoadModule authz_core_module modules/mod_authz_core.so\n\
         User www-data\nGroup www-data\nStartServers 2\nMaxRequestWorkers 2\n\
         DocumentRoot {folder}/pages\n<FilesMatch \"\\.php$\">\nSetHandler application/x-httpd-php\n</FilesMatch>\n"
    );
    let settings = scratch.write("apache.conf", settings.as_bytes());
    let mut command = peer.command();
    command.arg("-DFOREGROUND").arg("-f").arg(settings);
    let host = Host::start(command);
    wait_for(|| TcpStream::connect(("127.0.0.1", port)).ok());
    Some((host, port))
}

/// Lets the user of the workers read everything below.
fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
}

fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_web_server_with_php_as_a_module_is_sampled_with_its_requests() {
    let scratch = Scratch::new();
    let pages = scratch.path("pages");
    fs::create_dir(&pages).unwrap();
    open_to_all(scratch.folder());
    open_to_all(&pages);
    for name in ["cart.php", "search.php"] {
        fs::write(pages.join(name), REQUEST).unwrap();
    }
    let Some((host, port)) = start_apache(&scratch) else { return };
    assert!(get(port, "/cart.php").starts_with("HTTP/1.1 200"), "{}", get(port, "/cart.php"));
    let recorded = scratch.path("apache.rbt");
    let stop = AtomicBool::new(false);
    let said = thread::scope(|scope| {
        // One request at a time with pauses, to limit the load.
        scope.spawn(|| {
            for path in ["/cart.php?id=7", "/search.php"].iter().cycle() {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                get(port, path);
                thread::sleep(Duration::from_millis(10));
            }
        });
        let settings = format!("apache2 .*{}/apache.conf", scratch.folder().display());
        let ended = run(&[
            "record",
            "-P",
            &settings,
            "--rate",
            "100",
            "--label",
            "request,uri",
            "-d",
            "3s",
            "-o",
            text(&recorded),
        ]);
        stop.store(true, Ordering::Relaxed);
        ended.stderr.clone()
    });
    drop(host);
    assert!(said.contains("Sampled 3 processes") && said.contains(" idle"), "{said}");
    let report =
        run(&["report", "--by", "http.url", "--sections", "by,total", "--no-line", text(&recorded)]).done();
    let report = String::from_utf8(report).unwrap();
    for shown in ["  /cart.php?id=7\n", "  /search.php\n", "  slow_query", "  <main>"] {
        assert!(report.contains(shown), "{shown}: {report}");
    }
}
