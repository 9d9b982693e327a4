//! The claim on finding the functions of addresses.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use borehole_symbols::build_id_of;
use borehole_testkit::raw_profiles::{MappedFile, raw_pprof};

use super::measure::Work;
use super::{Bench, Claim, ClaimUnit, Goal};

const ADDRESSES: u64 = 1_000_000;

/// So many functions have a million addresses.
const FUNCTIONS: usize = 6000;

pub(crate) fn claims(bench: &Bench) -> Result<Vec<Claim>> {
    let program = compiled(&bench.folder)?;
    let raw = bench.input("addresses-1m.pb", |output| raw_profile(&program, output))?;
    let filled = bench.folder.join("symbolized.pb.gz");
    let symbolize = |more: &[&str]| {
        let arguments =
            ["symbolize".as_ref(), raw.as_os_str()].into_iter().chain(more.iter().map(AsRef::as_ref));
        Work::new(&bench.borehole, arguments).saving(&filled)
    };
    let on = "1 M distinct addresses";
    Ok(vec![
        Claim::new(
            format!("symbolize {on}, with lines and inlined functions"),
            ClaimUnit::Seconds,
            Goal::Value(5.0),
            symbolize(&[]).cpu_seconds(),
        ),
        Claim::new(
            format!("symbolize {on}, functions only"),
            ClaimUnit::Seconds,
            Goal::Value(2.5),
            symbolize(&["--functions-only"]).cpu_seconds(),
        ),
        Claim::new(
            format!("symbolize {on}, memory"),
            ClaimUnit::Bytes,
            Goal::Value(1e9),
            symbolize(&[]).peak_bytes(),
        ),
    ])
}

/// A program with debug information, in which each function has others inlined.
fn compiled(folder: &Path) -> Result<PathBuf> {
    let program = folder.join("many-functions");
    if !program.is_file() {
        let source = folder.join("many-functions.c");
        fs::write(&source, source_text())?;
        let mut gcc = Command::new("gcc");
        gcc.args(["-O2", "-g", "-nostdlib", "-static", "-Wl,--build-id", "-o"]).arg(&program).arg(&source);
        let status = gcc.status().context("gcc")?;
        ensure!(status.success(), "gcc: {status}");
    }
    Ok(program)
}

fn source_text() -> String {
    let mut text = String::from(
        "static inline __attribute__((always_inline)) unsigned mix(unsigned value) { return value << 13 ^ value >> 17; }\n\
         static inline __attribute__((always_inline)) unsigned twice(unsigned value) { return mix(mix(value) + 1); }\n",
    );
    for number in 0..FUNCTIONS {
        let steps: String =
            (0..8).map(|step| format!("    value += twice(value ^ {});\n", number * 31 + step)).collect();
        text += &format!("unsigned function_{number}(unsigned value)\n{{\n{steps}    return value;\n}}\n");
    }
    text + "void _start(void) { for (;;) ; }\n"
}

/// A profile with a sample of each address, each a byte behind the one before.
fn raw_profile(program: &Path, output: &mut impl Write) -> Result<()> {
    let (start, file_offset, size) = code(program)?;
    ensure!(size >= ADDRESSES, "expected {ADDRESSES} bytes of code, found {size}");
    let build_id = build_id_of(&fs::File::open(program)?).context("missing build ID")?.to_string();
    let path = program.to_string_lossy();
    let file = MappedFile { path: &path, build_id: &build_id, start, end: start + size, file_offset };
    let addresses: Vec<u64> = (start..start + ADDRESSES).collect();
    output.write_all(&raw_pprof(&file, &addresses))?;
    Ok(())
}

/// The address, the position in the file and the size of the code.
fn code(program: &Path) -> Result<(u64, u64, u64)> {
    let listed = Command::new("readelf").arg("-SW").arg(program).output().context("readelf")?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let line = listed.lines().find_map(|line| line.split_once(" .text ")).context("missing .text")?.1;
    let fields: Vec<_> = line.split_ascii_whitespace().collect();
    let number = |at: usize| -> Result<u64> {
        let digits = fields.get(at).context("a short line of readelf")?;
        u64::from_str_radix(digits, 16).with_context(|| format!("expected a number, found {digits}"))
    };
    Ok((number(1)?, number(2)?, number(3)?))
}
