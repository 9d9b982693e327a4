//! Groups inputs by program, and sorts the segments of a recording by time.
//!
//! Shells sort `trace.10.bin` before `trace.2.bin`, but what begins in one segment may end in the next one. Only the beginning
//! of each input is read for this.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;

use borehole::model::dial9::{self, metadata};
use borehole::model::{Context, Event, Sample, Tables, Value};
use borehole::{Format, Input, ProfileSink};

/// The number of events to read. Recorders describe a file at its beginning.
const LOOKED_AT: u32 = 64;
/// Metadata that distinguishes processes.
///
/// Source: the entries of [`METADATA`](dial9::event::METADATA) of dial9 0.5.7.
const KEYS: [&str; 4] = [metadata::HOST, metadata::BOOT, metadata::PROCESS, "service"];

/// The facts at the beginning of an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct InputHead {
    first_ns: Option<u64>,
    /// Whether its clock begins with it, as those of recordings from outside do.
    has_own_clock: bool,
    /// The values of [`KEYS`]; `None` if missing.
    from: [Option<String>; KEYS.len()],
    seen: u32,
}

/// The inputs of one program, in order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Program<T> {
    pub(crate) inputs: Vec<T>,
    /// The name of the program; `None` if there is only one.
    pub(crate) name: Option<String>,
}

impl ProfileSink for InputHead {
    fn sample(&mut self, _at: Context<'_>, _sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        Ok(ControlFlow::Break(()))
    }

    fn keeps_events(&mut self) -> bool {
        true
    }

    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        self.seen += 1;
        if let Some(time_ns) = event.time_ns.filter(|&time_ns| time_ns > 0) {
            self.first_ns = Some(self.first_ns.map_or(time_ns, |first_ns| first_ns.min(time_ns)));
        }
        let name = at.tables.string(at.tables.shape(event.shape).name);
        self.has_own_clock |= name == dial9::event::CLOCK_SYNC.as_bytes() && event.time_ns == Some(0);
        if name == dial9::event::METADATA.as_bytes() {
            event.values.iter().for_each(|value| self.described(value));
        }
        Ok(if self.seen < LOOKED_AT { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    }

    fn finish(&mut self, _tables: &Tables) -> io::Result<()> {
        Ok(())
    }
}

impl InputHead {
    /// Reads the beginning of an input. Errors are ignored here; they are reported when the input is read.
    fn of(input: Input) -> Self {
        let mut head = Self::default();
        let _ = input.read_into(&mut Tables::default(), &mut head);
        head
    }

    fn described(&mut self, value: &Value<'_>) {
        let Value::Map(entries) = value else { return };
        for (key, value) in entries {
            let (Value::Text(key), Value::Text(value)) = (key, value) else { continue };
            if let Some(place) = KEYS.iter().position(|known| known == key) {
                self.from[place] = Some(value.clone().into_owned());
            }
        }
    }

    /// The known values, such as `host-0, abcd-0, checkout`.
    fn name(&self) -> String {
        self.from.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}

/// Groups inputs by program, in the order of first inputs, and sorts those of each program by time. Only event traces are sorted,
/// and nothing is if an input cannot be read twice.
pub(crate) fn programs<T>(
    inputs: Vec<T>,
    open: impl Fn(&T) -> Option<Input>,
    is_file: impl Fn(&T) -> bool,
) -> Vec<Program<T>> {
    if inputs.len() < 2 || !inputs.iter().all(is_file) {
        return vec![Program { inputs, name: None }];
    }
    let heads = inputs.iter().map(|input| {
        open(input).filter(|input| input.format() == Format::Trc).map(InputHead::of).unwrap_or_default()
    });
    let heads: Vec<_> = heads.collect();
    sorted(inputs, &heads)
}

fn sorted<T>(inputs: Vec<T>, heads: &[InputHead]) -> Vec<Program<T>> {
    let mut rows: BTreeMap<&[Option<String>], usize> = BTreeMap::new();
    for head in heads.iter().filter(|head| head.from.iter().any(Option::is_some)) {
        let next = rows.len();
        rows.entry(&head.from).or_insert(next);
    }
    // Inputs without metadata belong to the only program, or together form one of their own.
    let unknown = if rows.len() < 2 { 0 } else { rows.len() };
    let mut found: Vec<_> = (0..=unknown).map(|_| (Vec::new(), None)).collect();
    for (input, head) in inputs.into_iter().zip(heads) {
        let row = rows.get(&head.from[..]).copied().unwrap_or(unknown);
        found[row].0.push((head.has_own_clock, head.first_ns, input));
        found[row].1 = Some(head);
    }
    let is_one = rows.len() < 2;
    let programs = found.into_iter().filter(|(inputs, _)| !inputs.is_empty()).map(|(mut inputs, head)| {
        if inputs.iter().all(|(_, first_ns, _)| first_ns.is_some()) {
            inputs.sort_by_key(|&(has_own_clock, first_ns, _)| (has_own_clock, first_ns));
        } else {
            // The clock of a trace is that of all.
            inputs.sort_by_key(|&(has_own_clock, ..)| has_own_clock);
        }
        let name = head.filter(|_| !is_one).map(InputHead::name);
        Program { inputs: inputs.into_iter().map(|(.., input)| input).collect(), name }
    });
    programs.collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn head(host: &str, first_ns: u64) -> InputHead {
        let host = Some(host.to_owned()).filter(|host| !host.is_empty());
        InputHead {
            first_ns: Some(first_ns),
            from: [host, None, None, None],
            seen: 1,
            ..InputHead::default()
        }
    }

    fn order(heads: &[InputHead]) -> Vec<(Option<String>, Vec<String>)> {
        let paths: Vec<_> = (0..heads.len()).map(|row| PathBuf::from(row.to_string())).collect();
        let text = |path: &PathBuf| path.display().to_string();
        let programs = sorted(paths, heads).into_iter();
        programs.map(|program| (program.name, program.inputs.iter().map(text).collect())).collect()
    }

    #[test]
    fn segments_are_in_the_order_of_time_by_what_they_hold() {
        let heads = [head("", 30), head("", 10), head("a", 20)];
        assert_eq!(order(&heads), [(None, ["1", "2", "0"].map(str::to_owned).to_vec())]);
        let mut own = heads.clone();
        own[1].has_own_clock = true;
        assert_eq!(order(&own), [(None, ["2", "0", "1"].map(str::to_owned).to_vec())]);
        let mut unknown = heads;
        unknown[1].first_ns = None;
        assert_eq!(order(&unknown), [(None, ["0", "1", "2"].map(str::to_owned).to_vec())]);
    }

    #[test]
    fn inputs_of_several_hosts_are_several_programs() {
        let heads = [head("a", 30), head("b", 10), head("a", 20), head("", 5)];
        let expected = [("a", vec!["2", "0"]), ("b", vec!["1"]), ("", vec!["3"])];
        let expected = expected.map(|(name, paths)| {
            (Some(name.to_owned()), paths.into_iter().map(str::to_owned).collect::<Vec<_>>())
        });
        assert_eq!(order(&heads), expected);
    }
}
