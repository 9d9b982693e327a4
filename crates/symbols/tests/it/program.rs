//! Programs that are compiled for the tests, and what addr2line and nm of binutils say about them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use borehole_symbols::{CodeAddress, Module, ModuleId, SymbolFrame, SymbolSettings, Symbolizer, Unresolved};
use tempfile::TempDir;

/// Functions that are inlined into others, a static one, and one that prints where it is.
pub(crate) const C: &str = r#"
#include <stdio.h>
#include <string.h>

static inline __attribute__((always_inline)) unsigned mix(unsigned value)
{
    value ^= value << 13;
    value ^= value >> 17;
    return value;
}

static inline __attribute__((always_inline)) unsigned twice(unsigned value)
{
    return mix(mix(value) + 1);
}

__attribute__((noinline)) unsigned work(unsigned count)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < count; i++)
        sum += twice(i ^ sum);
    return sum;
}

static __attribute__((noinline)) int quiet(int value)
{
    return value * 3 + 1;
}

int main(int argc, char **argv)
{
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    printf("%p %u\n", (void *)work, work(argc * 100) + quiet(argc));
    while (fgets(line, sizeof line, maps))
        if (strstr(line, argv[0]))
            fputs(line, stdout);
    return 0;
}
"#;

pub(crate) const CPP: &str = r#"
#include <cstdio>
#include <vector>

namespace app {
template <typename T> struct Stack {
    std::vector<T> rows;
    __attribute__((noinline)) void add(const T &row) { rows.push_back(row); }
};
namespace {
__attribute__((noinline)) int hidden(int value) { return value * 7; }
}
__attribute__((noinline)) int sum(const Stack<int> &stack)
{
    int sum = 0;
    for (int row : stack.rows)
        sum += hidden(row);
    return sum;
}
}

int main(int argc, char **)
{
    app::Stack<int> stack;
    stack.add(argc);
    std::printf("%d\n", app::sum(stack));
}
"#;

pub(crate) const RUST: &str = r#"
mod app {
    pub struct Row(pub u64);
    impl Row {
        #[inline(always)]
        fn mixed(&self) -> u64 { self.0.rotate_left(13) ^ 0x5bd1 }
        #[inline(never)]
        pub fn work(&self, count: u64) -> u64 { (0..count).map(|i| i ^ self.mixed()).fold(0, u64::wrapping_add) }
    }
}

fn main() {
    let count = std::env::args().count() as u64;
    println!("{}", app::Row(count).work(count * 100));
}
"#;

/// A compiled program in a folder of its own.
pub(crate) struct Program {
    pub(crate) folder: TempDir,
    pub(crate) path: PathBuf,
}

/// Compiles a source with `gcc`, `g++` or `rustc`.
#[track_caller]
pub(crate) fn compiled(compiler: &str, source: &str, options: &[&str]) -> Program {
    let folder = tempfile::tempdir().unwrap();
    let file = match compiler {
        "gcc" if source.starts_with("# assembler") => "program.s",
        "gcc" => "program.c",
        "g++" => "program.cc",
        _ => "program.rs",
    };
    let source_path = folder.path().join(file);
    std::fs::write(&source_path, source).unwrap();
    let path = folder.path().join("program");
    tool(
        compiler,
        [source_path.as_os_str()]
            .into_iter()
            .chain(options.iter().map(OsStr::new))
            .chain([OsStr::new("-o"), path.as_os_str()]),
    );
    Program { folder, path }
}

/// Runs a tool that must succeed; returns what it prints.
#[track_caller]
pub(crate) fn tool<'a>(name: &str, arguments: impl IntoIterator<Item = &'a OsStr>) -> String {
    let output = Command::new(name).args(arguments).stdin(Stdio::null()).output();
    let output =
        output.unwrap_or_else(|error| panic!("{name}: {error}; the tests need gcc, g++ and binutils"));
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A function at an address: its name in the symbol table, its file without the folder, and its line.
pub(crate) type Row = (String, String, u32);

impl Program {
    /// The functions that nm lists: start and end by name.
    pub(crate) fn functions(&self) -> BTreeMap<String, (u64, u64)> {
        let listed =
            tool("nm", ["-S", "--defined-only"].map(OsStr::new).into_iter().chain([self.path.as_os_str()]));
        let number = |digits: &str| u64::from_str_radix(digits, 16).unwrap();
        let function = |line: &str| match *line.split(' ').collect::<Vec<_>>() {
            [start, size, "t" | "T" | "W", name] => {
                Some((name.to_owned(), (number(start), number(start) + number(size))))
            }
            _ => None,
        };
        listed.lines().filter_map(function).collect()
    }

    /// The functions that addr2line finds at each address.
    pub(crate) fn reference(&self, addresses: &[u64]) -> Vec<Vec<Row>> {
        let mut command = Command::new("addr2line");
        command.args(["-a", "-f", "-i", "-e"]).arg(&self.path).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let text: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
        let writer = std::thread::spawn(move || input.write_all(text.as_bytes()).unwrap());
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        let mut found: Vec<Vec<Row>> = Vec::new();
        let text = String::from_utf8(output.stdout).unwrap();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if line.starts_with("0x") {
                found.push(Vec::new());
                continue;
            }
            let place = lines.next().unwrap().split(' ').next().unwrap();
            let (file, number) = place.rsplit_once(':').unwrap();
            found.last_mut().unwrap().push((line.to_owned(), file_name(file), number.parse().unwrap_or(0)));
        }
        assert_eq!(found.len(), addresses.len());
        found
    }

    pub(crate) fn module(&self) -> Module {
        Module::new(self.path.as_os_str().as_bytes())
    }

    /// Resolves addresses that the file states.
    pub(crate) fn resolved(&self, addresses: &[u64]) -> Vec<Vec<Row>> {
        let mut asked = Asked::of(self.module(), SymbolSettings::default());
        addresses.iter().map(|&address| rows(&asked.at(address).unwrap_or_default())).collect()
    }
}

fn file_name(path: &str) -> String {
    Path::new(path).file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Frames as rows, to compare them with those of addr2line.
pub(crate) fn rows(frames: &[SymbolFrame]) -> Vec<Row> {
    let row = |frame: &SymbolFrame| {
        let name = frame.system_name.as_deref().or(frame.function.as_deref()).unwrap_or("??");
        (name.to_owned(), file_name(frame.file.as_deref().unwrap_or("??")), frame.line.unwrap_or(0))
    };
    frames.iter().map(row).collect()
}

/// A symbolizer that is asked about one module.
pub(crate) struct Asked {
    pub(crate) symbolizer: Symbolizer,
    id: ModuleId,
}

impl Asked {
    pub(crate) fn of(module: Module, settings: SymbolSettings) -> Self {
        let mut symbolizer = Symbolizer::new(settings);
        let id = symbolizer.module(module);
        Self { symbolizer, id }
    }

    pub(crate) fn at(&mut self, address: u64) -> Result<Vec<SymbolFrame>, Unresolved> {
        self.resolve(CodeAddress::Stated(address))
    }

    pub(crate) fn resolve(&mut self, address: CodeAddress) -> Result<Vec<SymbolFrame>, Unresolved> {
        let mut frames = Vec::new();
        self.symbolizer.resolve(self.id, address, &mut frames).map(|()| frames)
    }
}
