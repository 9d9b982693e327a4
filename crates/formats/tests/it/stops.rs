//! A sink that has enough gets no more, whatever the format.

use std::io::{self, BufReader, Read};
use std::ops::ControlFlow;

use borehole_formats::detect::Format;
use borehole_formats::registry::{Document, Import};
use borehole_formats::{ReadError, ReadOptions};
use borehole_model::{Context, Event, ProfileSink, Recovery, Sample, Tables};
use borehole_testkit::project_file;

/// Takes a number of samples and events.
struct Enough {
    wanted: usize,
    taken: usize,
}

impl Enough {
    fn take(&mut self) -> io::Result<ControlFlow<()>> {
        self.taken += 1;
        Ok(if self.taken >= self.wanted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

impl ProfileSink for Enough {
    fn sample(&mut self, _: Context<'_>, _: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.take()
    }

    fn event(&mut self, _: Context<'_>, _: &Event<'_>) -> io::Result<ControlFlow<()>> {
        self.take()
    }
}

fn import(format: Format, mut bytes: &[u8], sink: &mut dyn ProfileSink) -> Result<Recovery, ReadError> {
    let (options, tables) = (ReadOptions::lenient(), &mut Tables::default());
    match format.importer().unwrap() {
        Import::Plain(import) => {
            let input: &mut dyn Read = &mut bytes;
            import(&mut BufReader::new(input), &options, tables, sink)
        }
        Import::Accompanied { import, .. } => {
            let input: &mut dyn Read = &mut bytes;
            import(&mut BufReader::new(input), None, &options, tables, sink)
        }
        Import::Enveloped(import) => {
            import(&mut bytes, &options, || Ok(Box::new(io::Cursor::new(Vec::new()))), tables, sink)
        }
        Import::Document { import, .. } => {
            import(Document { bytes, sibling: None, on_passed: None }, &options, tables, sink)
        }
    }
}

/// The seeds of the fuzz targets that are named for the format.
fn seeds(format: Format) -> Vec<Vec<u8>> {
    let Ok(folder) = std::fs::read_dir(project_file(&format!("fuzz/seeds/{}", format.name()))) else {
        return Vec::new();
    };
    folder.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect()
}

#[test]
fn a_sink_that_has_enough_gets_no_more() {
    let mut formats = 0;
    for &format in Format::ALL.iter().filter(|format| format.importer().is_some()) {
        let mut most = 0;
        for seed in seeds(format) {
            let run = |wanted| {
                let mut sink = Enough { wanted, taken: 0 };
                let recovery = import(format, &seed, &mut sink);
                (sink.taken, recovery.map(|recovery| recovery.stopped))
            };
            let (all, outcome) = run(usize::MAX);
            assert!(!outcome.unwrap_or(false), "{}", format.name());
            most = most.max(all);
            for wanted in [1, 2, 3, all].into_iter().filter(|&wanted| 0 < wanted && wanted <= all) {
                let (taken, outcome) = run(wanted);
                assert_eq!((taken, outcome.unwrap()), (wanted, true), "{}: {wanted} of {all}", format.name());
            }
        }
        formats += usize::from(most > 1);
    }
    assert!(formats > 15, "{formats} formats with more than one sample");
}
