//! Functions, files and lines of programs of several languages, compared with addr2line of binutils.

use borehole_symbols::{SymbolDetail, SymbolSettings};

use crate::program::{Asked, C, CPP, Program, RUST, compiled, rows};

/// Every address of some functions.
fn addresses(program: &Program, functions: &[&str]) -> Vec<u64> {
    let known = program.functions();
    functions
        .iter()
        .flat_map(|name| {
            let (start, end) = known[*name];
            start..end
        })
        .collect()
}

#[test]
fn inlined_functions_of_c_are_those_of_addr2line_at_every_address() {
    for options in [
        &["-O2", "-g"][..],
        &["-O2", "-g", "-no-pie"],
        &["-O0", "-g"],
        &["-O2", "-gdwarf-4"],
        &["-O2", "-gdwarf-4", "-gz=zlib"],
        &["-O2", "-gdwarf-5", "-gz=zlib", "-ffunction-sections"],
    ] {
        let program = compiled("gcc", C, options);
        let addresses = addresses(&program, &["work", "quiet", "main"]);
        let (ours, theirs) = (program.resolved(&addresses), program.reference(&addresses));
        for ((address, ours), theirs) in addresses.iter().zip(&ours).zip(&theirs) {
            assert_eq!(ours, theirs, "{options:?} {address:#x}");
        }
        let deepest = ours.iter().map(Vec::len).max();
        assert_eq!(deepest, Some(3), "mix in twice in work: {options:?}");
    }
}

#[test]
fn inlined_frames_are_marked_and_the_last_has_an_offset() {
    let program = compiled("gcc", C, &["-O2", "-g"]);
    let (start, end) = program.functions()["work"];
    let mut asked = Asked::of(program.module(), SymbolSettings::default());
    for address in start..end {
        let frames = asked.at(address).unwrap();
        let (last, inlined) = frames.split_last().unwrap();
        assert!(inlined.iter().all(|frame| frame.is_inlined && frame.offset.is_none()), "{frames:?}");
        assert_eq!((last.is_inlined, last.offset), (false, Some(address - start)));
        assert!(frames.iter().all(|frame| frame.file.as_deref().is_some_and(|file| file.starts_with('/'))));
    }
}

#[test]
fn names_of_cpp_are_readable() {
    let program = compiled("g++", CPP, &["-O2", "-g"]);
    let mut asked = Asked::of(program.module(), SymbolSettings::default());
    let mut names: Vec<_> = program
        .functions()
        .values()
        .filter_map(|&(start, _)| {
            let frames = asked.at(start).ok()?;
            Some(frames.last()?.function.as_deref()?.to_owned())
        })
        .collect();
    names.sort();
    for expected in [
        "app::Stack<int>::add(int const&)",
        "app::(anonymous namespace)::hidden(int)",
        "app::sum(app::Stack<int> const&)",
        "main",
    ] {
        assert!(names.iter().any(|name| name == expected), "{expected} in {names:#?}");
    }
}

#[test]
fn functions_of_rust_are_those_of_addr2line() {
    let program = compiled("rustc", RUST, &["-g", "-O", "--edition=2024"]);
    let functions = program.functions();
    let own: Vec<_> = functions.iter().filter(|(name, _)| name.contains("program")).collect();
    assert!(own.len() >= 2, "{functions:?}");
    let addresses: Vec<u64> = own.iter().flat_map(|&(_, &(start, end))| start..end).collect();
    let (ours, theirs) = (program.resolved(&addresses), program.reference(&addresses));
    let names = |rows: &[crate::program::Row]| rows.iter().map(|row| row.0.clone()).collect::<Vec<_>>();
    let differing: Vec<_> = addresses
        .iter()
        .zip(ours.iter().zip(&theirs))
        .filter(|(_, (ours, theirs))| names(ours) != names(theirs))
        .collect();
    assert!(differing.is_empty(), "{differing:#?}");
    let mut asked = Asked::of(program.module(), SymbolSettings::default());
    let work = own.iter().find(|(name, _)| name.contains("work")).unwrap().1.0;
    let frames = asked.at(work).unwrap();
    assert!(
        frames.last().unwrap().function.as_deref().unwrap().ends_with("app::Row>::work")
            || frames.last().unwrap().function.as_deref() == Some("program::app::Row::work"),
        "{frames:?}"
    );
}

#[test]
fn functions_alone_come_from_symbol_tables() {
    let program = compiled("gcc", C, &["-O2", "-g"]);
    let mut settings = SymbolSettings::default();
    settings.detail = SymbolDetail::Functions;
    let mut asked = Asked::of(program.module(), settings);
    let (start, _) = program.functions()["work"];
    assert_eq!(rows(&asked.at(start + 3).unwrap()), [("work".to_owned(), "??".to_owned(), 0)]);
}

#[test]
fn split_debug_information_is_named_and_lines_are_still_found() {
    let program = compiled("gcc", C, &["-O2", "-g", "-gsplit-dwarf"]);
    let (start, _) = program.functions()["quiet"];
    let mut asked = Asked::of(program.module(), SymbolSettings::default());
    let frames = asked.at(start).unwrap();
    assert_eq!((frames.len(), frames[0].function.as_deref(), frames[0].line), (1, Some("quiet"), Some(27)));
    let report = asked.symbolizer.reports().next().unwrap();
    assert!(report.complaint.unwrap().contains(".dwo"), "{report:?}");
}
