//! Addresses of running programs: positions in files, the vDSO, the kernel, compiled code.

use std::os::unix::fs::FileExt as _;
use std::process::Command;
use std::sync::Arc;

use borehole_symbols::{AddressNames, CodeAddress, Module, SymbolSettings};

use crate::program::{Asked, C, compiled, rows};

fn hex(digits: &str) -> u64 {
    u64::from_str_radix(digits.trim_start_matches("0x"), 16).unwrap()
}

/// The program prints the address of `work` and its own mappings.
#[test]
fn positions_in_mapped_files_are_those_of_running_programs() {
    for options in [
        &["-O2", "-g"][..],
        &["-O2", "-g", "-no-pie"],
        &["-O2", "-g", "-static"],
        &["-O2", "-g", "-Wl,-z,noseparate-code"],
    ] {
        let program = compiled("gcc", C, options);
        let output = Command::new(&program.path).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let mut lines = text.lines();
        let address = hex(lines.next().unwrap().split(' ').next().unwrap());
        let offset = lines.find_map(|line| {
            let fields: Vec<_> = line.split_ascii_whitespace().collect();
            let (start, end) = fields[0].split_once('-').unwrap();
            (hex(start)..hex(end)).contains(&address).then(|| address - hex(start) + hex(fields[2]))
        });
        let mut asked = Asked::of(program.module(), SymbolSettings::default());
        let frames = asked.resolve(CodeAddress::FileOffset(offset.unwrap())).unwrap();
        assert_eq!((&*rows(&frames)[0].0, frames[0].offset), ("work", Some(0)), "{options:?}");
    }
}

#[test]
fn the_vdso_is_resolved_from_memory() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.ends_with("[vdso]")).unwrap();
    let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
    let mut image = vec![0; usize::try_from(hex(end) - hex(start)).unwrap()];
    let memory = std::fs::File::open("/proc/self/mem").unwrap();
    memory.read_exact_at(&mut image, hex(start)).unwrap();
    let length = image.len() as u64;
    let module = Module { memory: Some(Arc::from(image)), ..Module::new("[vdso]") };
    let mut asked = Asked::of(module, SymbolSettings::default());
    let found = (0..length).filter_map(|address| asked.resolve(CodeAddress::FileOffset(address)).ok());
    let names: std::collections::BTreeSet<String> = found.map(|frames| rows(&frames)[0].0.clone()).collect();
    assert!(names.iter().any(|name| name.ends_with("clock_gettime")), "{names:?}");
}

/// A process may not be shown the kernel's addresses; then the error says what would show them.
#[test]
fn kernel_names_are_read_or_the_obstacle_is_named() {
    match AddressNames::kernel() {
        Ok(names) => {
            let text = std::fs::read_to_string("/proc/kallsyms").unwrap();
            let line = text.lines().find(|line| line.ends_with(" schedule")).unwrap();
            let start = hex(line.split(' ').next().unwrap());
            assert_eq!(names.find(start + 1), Some(("schedule", 1)));
        }
        Err(error) => assert!(error.to_string().contains("kernel.kptr_restrict"), "{error}"),
    }
}

#[test]
fn maps_of_compiled_code_are_read_unless_somebody_else_wrote_them() {
    let process = i32::try_from(std::process::id()).unwrap();
    let path = format!("/tmp/perf-{process}.map");
    std::fs::write(&path, "7f0000001000 20 JS:~render\n").unwrap();
    let names = AddressNames::perf_map(process).unwrap();
    assert_eq!(names.find(0x7f00_0000_1008), Some(("JS:~render", 8)));
    let is_root = std::os::unix::fs::chown(&path, Some(12_345), None).is_ok();
    if is_root {
        let error = AddressNames::perf_map(process).unwrap_err();
        assert!(error.to_string().contains("belongs to user 12345"), "{error}");
    }
    std::fs::remove_file(&path).unwrap();
}
