//! Random profiles, written and read.

use borehole_formats::Compression;
use borehole_formats::tachyon::{ByteOrder, HeaderLayout, PythonFrame, Reader, SampleOrder, WriterOptions};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{comparable, finish, read_well, rewrite, statistics, writer};

#[derive(Clone, Debug)]
pub(crate) struct Step {
    thread: u64,
    interpreter: u32,
    later_us: u64,
    status: u8,
    /// The number of frames that the thread drops, the number of repeats of the rest, and the new frames.
    popped: usize,
    repeats: usize,
    pushed: Vec<usize>,
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let numbers = (0_u64..3, 0_u32..2, prop_oneof![0_u64..5000, Just(u64::MAX - 3)], 0_u8..64);
    let repeats = prop_oneof![60 => 0_usize..4, 1 => 5000_usize..9000];
    (numbers, 0_usize..6, repeats, vec(0_usize..40, 0..6)).prop_map(|(numbers, popped, repeats, pushed)| {
        let (thread, interpreter, later_us, status) = numbers;
        let thread = 30_000 + (thread << 33);
        Step { thread, interpreter, later_us, status, popped, repeats, pushed }
    })
}

pub(crate) fn options() -> impl Strategy<Value = WriterOptions> {
    (any::<bool>(), any::<bool>(), any::<bool>(), any::<u64>()).prop_map(|(big, old, plain, start_us)| {
        WriterOptions {
            byte_order: if big { ByteOrder::Big } else { ByteOrder::Little },
            layout: if old { HeaderLayout::Old } else { HeaderLayout::New },
            compression: if plain { Compression::None } else { Compression::Zstd },
            python: [3, 15, 2],
            start_us,
            interval_us: 1000,
            ..WriterOptions::default()
        }
    })
}

fn frame(number: usize) -> (String, i32) {
    (format!("f{}", number / 2), i32::try_from(number % 2).unwrap() * 1000 - 1)
}

/// Thread, interpreter, time, status, and the frames, leaf first.
pub(crate) type Observation = (u64, u32, u64, u8, Vec<(String, i32)>);

/// The samples of `steps` in order of time, and the file.
pub(crate) fn write(steps: &[Step], options: WriterOptions) -> (Vec<Observation>, Vec<u8>) {
    let mut writer = writer(options);
    writer.set_statistics(Some(statistics()));
    let mut stacks: std::collections::HashMap<_, Vec<usize>> = std::collections::HashMap::new();
    let (mut samples, mut time_us) = (Vec::new(), options.start_us);
    for step in steps {
        let stack = stacks.entry((step.thread, step.interpreter)).or_default();
        stack.truncate(stack.len().saturating_sub(step.popped));
        stack.extend(&step.pushed);
        let slot = writer.thread(step.thread, step.interpreter).unwrap();
        for _ in 0..=step.repeats {
            time_us = time_us.wrapping_add(step.later_us);
            let frames: Vec<_> = stack.iter().rev().map(|&number| frame(number)).collect();
            let defined: Vec<_> = frames
                .iter()
                .map(|(function, line)| {
                    let (function, line) = (function.as_bytes(), *line);
                    let end = if line == -1 { -1 } else { line + 2 };
                    let def = PythonFrame {
                        file: b"/x.py",
                        function,
                        line,
                        end_line: end,
                        column: -1,
                        end_column: -1,
                        opcode: Some(7),
                    };
                    writer.define_frame(&def).unwrap()
                })
                .collect();
            writer.write_sample(slot, time_us, step.status, &defined).unwrap();
            samples.push((step.thread, step.interpreter, time_us, step.status, frames));
        }
    }
    (samples, finish(writer))
}

/// The samples of each thread in its own order.
fn by_thread(mut samples: Vec<Observation>) -> Vec<Observation> {
    samples.sort_by_key(|sample| (sample.0, sample.1));
    samples
}

fn observations(bytes: &[u8]) -> Vec<Observation> {
    let samples = read_well(bytes).into_iter();
    let observations = samples.map(|sample| {
        let frames = sample.frames_leaf_first.into_iter();
        let frames = frames.map(|frame| (frame.1, frame.2.map_or(-1, |place| place[0].try_into().unwrap())));
        (sample.thread, sample.interpreter, sample.time_us, sample.status, frames.collect())
    });
    observations.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn written_samples_are_read_back(steps in vec(step(), 0..40), options in options()) {
        let (samples, bytes) = write(&steps, options);
        let mut reader = Reader::new(&bytes).unwrap();
        prop_assert_eq!(reader.statistics(), Some(&statistics()));
        prop_assert_eq!(reader.header().layout, options.layout);
        while reader.next_sample().unwrap().is_some() {}
        prop_assert!(by_thread(observations(&bytes)) == by_thread(samples));
    }

    #[test]
    fn a_file_written_again_is_the_same(steps in vec(step(), 0..40), options in options()) {
        let (_, bytes) = write(&steps, options);
        let again = rewrite(&bytes, |options| assert_eq!(options.order, SampleOrder::File));
        prop_assert!(comparable(&again) == comparable(&bytes));
    }
}
