//! Claims on a large profile of allocations, with four values a sample, beside Go's pprof.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use borehole_testkit::fuzzing::Random;
use borehole_testkit::peers::peer;
use borehole_wire::put_varint;

use super::measure::Work;
use super::{Bench, Claim, ClaimUnit, Goal};

const SAMPLES: u64 = 1_000_000;

const LOCATIONS: u64 = 20_000;

/// How many locations a function has.
const LINES: u64 = 4;

/// How deep the shallowest stacks are, and how many depths there are.
const DEPTHS: [usize; 2] = [25, 11];

/// The binary digits of the numbers that stacks have.
const STACK_BITS: usize = 20;

/// The value types of Go's heap profiles.
const TYPES: [[&str; 2]; 4] = [
    ["alloc_objects", "count"],
    ["alloc_space", "bytes"],
    ["inuse_objects", "count"],
    ["inuse_space", "bytes"],
];

/// How many times as fast a report is to be.
const FASTER: f64 = 3.0;

pub(crate) fn claims(bench: &Bench) -> Result<Vec<Claim>> {
    let Some(pprof) = peer("pprof") else { return Ok(Vec::new()) };
    let profile = bench.input("allocations-1m.pb", |output| write(SAMPLES, output))?;
    let ours = || Work::new(&bench.borehole, ["report".as_ref(), "--no-line".as_ref(), profile.as_os_str()]);
    let command = pprof.command();
    let theirs = Work::new(Path::new(command.get_program()), ["-top".as_ref(), profile.as_os_str()]);
    let (their_cpu, their_peak) = theirs.remembered();
    let name = |what| format!("report of 1M samples of four values in pprof, {what}");
    let reference = format!("pprof -top of {}", pprof.version());
    Ok(vec![
        Claim::new(name("CPU"), ClaimUnit::Seconds, Goal::Ratio(FASTER), ours().cpu_seconds())
            .against(reference.clone(), their_cpu),
        Claim::new(name("peak memory"), ClaimUnit::Bytes, Goal::Ratio(1.0), ours().peak_bytes())
            .against(reference, their_peak)
            .once(),
    ])
}

/// A profile of `samples` as Go writes those of the heap, without compression: 20,000 locations, and stacks some 30 deep that
/// share their beginnings.
///
/// Source: google/pprof, `proto/profile.proto`.
fn write(samples: u64, output: &mut impl Write) -> Result<()> {
    let mut strings = PprofStrings(vec![String::new()]);
    for [kind, unit] in TYPES {
        output.write_all(&field(1, &value_type(&mut strings, kind, unit)))?;
    }
    output.write_all(&field(11, &value_type(&mut strings, "space", "bytes")))?;
    output.write_all(&number(12, 512 << 10))?;
    let mut random = Random::new(1);
    for _ in 0..samples {
        output.write_all(&field(2, &sample(&mut random)))?;
    }
    write_symbols(&mut strings, output)?;
    for string in &strings.0 {
        output.write_all(&field(6, string.as_bytes()))?;
    }
    Ok(())
}

/// Texts in the order of their numbers.
struct PprofStrings(Vec<String>);

impl PprofStrings {
    /// The number of a further text.
    fn add(&mut self, text: impl Into<String>) -> u64 {
        self.0.push(text.into());
        self.0.len() as u64 - 1
    }
}

fn value_type(strings: &mut PprofStrings, kind: &str, unit: &str) -> Vec<u8> {
    [number(1, strings.add(kind)), number(2, strings.add(unit))].concat()
}

/// A stack, its leaf first, and what was allocated there and is in use.
fn sample(random: &mut Random) -> Vec<u8> {
    let stack = random.number() % (1 << STACK_BITS);
    let [least, depths] = DEPTHS;
    let depth = least + random.below(depths);
    // Digits of the number choose who calls whom: the nearer to the root, the fewer there are.
    let choice = |at: usize| stack >> (STACK_BITS * (least + depths - 1 - at) / (least + depths - 1));
    let locations = (0..depth).rev().map(|at| 1 + (choice(at) * 31 + at as u64 * 131) % LOCATIONS);
    let bytes = 16 << random.below(8);
    let objects = 1 + random.number() % 1000;
    let in_use = random.number() % (objects + 1);
    let values = [objects, objects * bytes, in_use, in_use * bytes];
    [field(1, &packed(locations)), field(2, &packed(values.into_iter()))].concat()
}

/// The binary, the locations in it and their functions.
fn write_symbols(strings: &mut PprofStrings, output: &mut impl Write) -> Result<()> {
    let binary = strings.add("/srv/shop/bin/shop");
    let start = 0x40_0000;
    let mapping = [number(1, 1), number(2, start), number(3, start + (64 << 20)), number(5, binary)].concat();
    // It has functions, files and lines.
    let known = [number(7, 1), number(8, 1), number(9, 1)].concat();
    output.write_all(&field(3, &[mapping, known].concat()))?;
    for location in 1..=LOCATIONS {
        let line = [number(1, 1 + (location - 1) / LINES), number(2, 10 + location % 500)].concat();
        let facts = [number(1, location), number(2, 1), number(3, start + 64 * location)].concat();
        output.write_all(&field(4, &[facts, field(4, &line)].concat()))?;
    }
    for function in 1..=LOCATIONS / LINES {
        let package = function % 200;
        let name = strings.add(format!("example.com/shop/package{package}.(*Service).Method{function}"));
        let file = strings.add(format!("/srv/shop/package{package}/service.go"));
        let facts = [number(1, function), number(2, name), number(3, name), number(4, file)].concat();
        output.write_all(&field(5, &facts))?;
    }
    Ok(())
}

/// A field that is a number.
fn number(field: u64, value: u64) -> Vec<u8> {
    packed([field << 3, value].into_iter())
}

/// A field of bytes.
fn field(field: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = packed([field << 3 | 2, payload.len() as u64].into_iter());
    bytes.extend_from_slice(payload);
    bytes
}

/// Numbers one behind the other.
fn packed(numbers: impl Iterator<Item = u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    numbers.for_each(|number| put_varint(&mut bytes, number));
    bytes
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use borehole_wire::Cursor;

    use super::*;

    /// The fields of a message: numbers in their place, bytes as they are.
    fn fields(message: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
        let mut cursor = Cursor::new(message, 0);
        let mut fields = Vec::new();
        while !cursor.is_empty() {
            let (tag, value) = (cursor.varint().unwrap(), cursor.varint().unwrap());
            let length = if tag & 7 == 2 { usize::try_from(value).unwrap() } else { 0 };
            fields.push((tag >> 3, value, cursor.bytes(length).unwrap().to_vec()));
        }
        fields
    }

    fn numbers(bytes: &[u8]) -> Vec<u64> {
        let mut cursor = Cursor::new(bytes, 0);
        let mut numbers = Vec::new();
        while !cursor.is_empty() {
            numbers.push(cursor.varint().unwrap());
        }
        numbers
    }

    #[test]
    fn samples_have_four_values_and_stacks_of_known_locations_that_share_their_beginnings() {
        let mut profile = Vec::new();
        write(2_000, &mut profile).unwrap();
        let profile = fields(&profile);
        let count = |number| profile.iter().filter(|(found, ..)| *found == number).count() as u64;
        assert_eq!([1, 2, 4, 5].map(count), [4, 2_000, LOCATIONS, LOCATIONS / LINES]);
        let (mut roots, mut depths) = (BTreeSet::new(), BTreeSet::new());
        for (_, _, sample) in profile.iter().filter(|(number, ..)| *number == 2) {
            let sample = fields(sample);
            let [(1, _, locations), (2, _, values)] = &sample[..] else { panic!("{sample:?}") };
            let (locations, values) = (numbers(locations), numbers(values));
            assert!(locations.iter().all(|location| (1..=LOCATIONS).contains(location)), "{locations:?}");
            let [objects, bytes, in_use, in_use_bytes] = values[..] else { panic!("{values:?}") };
            assert!(in_use <= objects && bytes * in_use == in_use_bytes * objects, "{values:?}");
            roots.insert(locations[locations.len() - 1]);
            depths.insert(locations.len());
        }
        assert_eq!(depths, (25..=35).collect());
        assert_eq!(roots.len(), 1);
    }

    #[test]
    fn the_same_profile_is_written_each_time() {
        let [one, other] = [(), ()].map(|()| {
            let mut profile = Vec::new();
            write(100, &mut profile).unwrap();
            profile
        });
        assert!(one == other);
    }
}
