//! Profiles of each format that is read, written for the programs of others, which read them.

use std::path::PathBuf;

use borehole::{Format, Input, InputOptions, Source, Target, convert};
use borehole_testkit::peers::{peer, perfetto_rows, speedscope_import, speedscope_schema_errors};
use borehole_testkit::{Scratch, corpus};

/// A file of each format that another program writes.
const FILES: [(Format, &str); 26] = [
    (Format::PerfScript, "perf/threads.perf"),
    (Format::PerfData, "perf/threads.data"),
    (Format::ChromeTrace, "chrome/viztracer.json"),
    (Format::ChromeTrace, "chrome/devtools.json"),
    (Format::Cpuprofile, "v8/work.cpuprofile"),
    (Format::Heapprofile, "v8/heap.heapprofile"),
    (Format::Pstats, "pstats/3.15.pstats"),
    (Format::Callgrind, "callgrind/calls.callgrind"),
    (Format::Callgrind, "callgrind/calls.cachegrind"),
    (Format::Callgrind, "callgrind/calls.xdebug"),
    (Format::Jfr, "jfr/work.jfr"),
    (Format::Folded, "folded/py-spy-one-process.txt"),
    (Format::Folded, "austin/gc.austin"),
    (Format::Mojo, "austin/full.mojo"),
    (Format::Gecko, "firefox/shutdown.json"),
    (Format::Gperftools, "pprof-text/alloc.cpu"),
    (Format::PprofText, "pprof-text/go-heap.txt"),
    (Format::Pyinstrument, "pyinstrument/shop.pyisession"),
    (Format::Scalene, "scalene/shop.json"),
    (Format::Stackprof, "stackprof/wall.json"),
    (Format::Rbspy, "rbspy/shop.rbspy"),
    (Format::Dhat, "dhat/alloc.json"),
    (Format::XdebugTrace, "xdebug/calls.1.xt"),
    (Format::Pprof, "pprof/go-heap.pb.gz"),
    (Format::Otlp, "otlp/cpu-and-times.otlp"),
    (Format::Phpspy, "phpspy/closures.txt"),
];

/// Those whose samples have no times, so that there is nothing to draw on a timeline.
const WITHOUT_TIMES: [&str; 13] = [
    "v8/heap.heapprofile",
    "pstats/3.15.pstats",
    "callgrind/calls.callgrind",
    "callgrind/calls.cachegrind",
    "callgrind/calls.xdebug",
    "folded/py-spy-one-process.txt",
    "austin/gc.austin",
    "austin/full.mojo",
    "pprof-text/alloc.cpu",
    "pprof-text/go-heap.txt",
    "dhat/alloc.json",
    "pprof/go-heap.pb.gz",
    "phpspy/closures.txt",
];

/// Writes the profile of each file in `format`, and has it checked.
fn each_written(format: Format, check: impl Fn(&PathBuf) -> Result<(), String>) {
    let is_timeline = matches!(format, Format::Perfetto | Format::ChromeTrace);
    let scratch = Scratch::new();
    let mut failures = Vec::new();
    for (of, file) in FILES {
        let input = Input::open(Source::path(corpus(file)).unwrap(), &InputOptions::default()).unwrap();
        assert_eq!(input.format(), of, "{file}");
        let mut output = Vec::new();
        let converted = convert([input], &Target::new(format), &mut output);
        if is_timeline && WITHOUT_TIMES.contains(&file) {
            let message = converted.err().map(|error| error.to_string()).unwrap_or_default();
            assert!(message.contains("nothing to draw"), "{file}: {message}");
            continue;
        }
        converted.unwrap_or_else(|error| panic!("{file}: {error}"));
        let written = scratch.write("profile", &output);
        if let Err(message) = check(&written) {
            failures.push(format!("{file}: {message}"));
        }
    }
    assert_eq!(failures, [""; 0], "{}", failures.join("\n"));
}

fn expect(holds: bool, said: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(said.chars().take(400).collect()) }
}

#[test]
fn pprof_has_samples_of_every_format() {
    let Some(pprof) = peer("pprof") else { return };
    each_written(Format::Pprof, |file| {
        let output = pprof.run(&["-raw", &file.to_string_lossy()]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let rows = text.lines().skip_while(|line| *line != "Samples:").skip(2);
        let samples = rows.take_while(|line| *line != "Locations").filter(|line| line.contains(": ")).count();
        expect(output.status.success() && samples > 0, &format!("{text}{:?}", output.stderr))
    });
}

#[test]
fn speedscope_imports_what_is_written_of_every_format() {
    each_written(Format::Speedscope, |file| {
        let Some(errors) = speedscope_schema_errors(file) else { return Ok(()) };
        expect(errors.is_empty(), &errors.join("; "))?;
        let Some(imported) = speedscope_import(file) else { return Ok(()) };
        let profiles = imported?.profiles;
        let has_weight = profiles.iter().any(|profile| profile.total_weight > 0.0 && profile.frames > 0);
        expect(has_weight, &format!("{profiles:?}"))
    });
}

#[test]
fn the_profiler_of_firefox_loads_what_is_written_of_every_format() {
    let Some(profiler) = peer("firefox-profiler") else { return };
    each_written(Format::Gecko, |file| {
        let text = profiler.stdout(&["load", &file.to_string_lossy()]);
        let text = text.replace(" ", "");
        expect(text.contains("\"threads\":[{") && !text.contains("\"error\""), &text)
    });
}

#[test]
fn perfetto_imports_timelines_of_every_format_without_errors() {
    let errors = "select name, value from stats where value > 0 and severity != 'info'";
    for format in [Format::Perfetto, Format::ChromeTrace] {
        each_written(format, |file| {
            let Some(answers) = perfetto_rows(file, &[errors]) else { return Ok(()) };
            expect(answers[0].is_empty(), &format!("{answers:?}"))
        });
    }
}

#[test]
fn the_classes_of_opentelemetry_read_what_is_written_of_every_format() {
    let Some(classes) = peer("otlp") else { return };
    each_written(Format::Otlp, |file| {
        let text = classes.stdout(&["read", &file.to_string_lossy()]);
        expect(text.replace(" ", "").contains("\"samples\":[{"), &text)
    });
}
