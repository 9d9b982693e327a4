//! Dump files: written dumps are read back, and damage is reported.

use std::collections::BTreeMap;
use std::io;

use borehole_process::{Dump, ForeignMemory as _, Image};
use proptest::collection::{btree_map, vec};
use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, proptest};

/// Mappings, symbols, threads and two pages.
fn image() -> Image {
    let lines = "borehole-image 1\n\
                 mapping 1000 3000 0 rx /usr/bin/php\n\
                 mapping 200000 400000 2000 rwsd /tmp/a\\nb\n\
                 symbols 1000\n\
                 tls 40 10\n\
                 symbol 1010 8 executor_globals\n\
                 local 8 4 _tsrm_ls_cache\n\
                 symbols 200000\n\
                 thread 77 7f0000001000\n\
                 thread 78 -\n";
    let mut text = lines.as_bytes().to_vec();
    for (address, byte) in [(0x1000, 1), (0x2000, 2), (0x9000, 9)] {
        text.extend(format!("page {address:x}\n").as_bytes());
        text.extend([byte; 4096]);
        text.push(b'\n');
    }
    let mut packed = Vec::new();
    let mut packer = flate2::write::GzEncoder::new(&mut packed, flate2::Compression::fast());
    io::Write::write_all(&mut packer, &text).unwrap();
    packer.finish().unwrap();
    Image::read(&*packed).unwrap()
}

fn written(dump: &Dump) -> Vec<u8> {
    let mut file = Vec::new();
    dump.write(&mut file).unwrap();
    file
}

/// A dump with everything in it, of several blocks of memory.
pub(crate) fn example() -> Dump {
    let mut dump = Dump::new(image());
    dump.set_fact("pid", "77");
    dump.set_fact("path", &b"\xff\x00"[..]);
    let noise = |index: u32| (index.wrapping_mul(2_654_435_761) >> 24).to_le_bytes()[0];
    dump.insert(0x7f00_0000_0000, (0..3_000_000).map(noise).collect());
    dump.insert(0x20_0000, vec![0; 2_500_000]);
    dump.insert(0x7e00_0000_0001, vec![5; 77]);
    dump
}

/// The offsets of the blocks of a file, and its end.
pub(crate) fn boundaries(file: &[u8]) -> Vec<usize> {
    let mut all = vec![16];
    while all[all.len() - 1] < file.len() {
        let at = all[all.len() - 1];
        let stored = u32::from_le_bytes(*file[at + 4..].first_chunk().unwrap());
        all.push(at + 16 + usize::try_from(stored).unwrap());
    }
    all
}

/// Whether everything in `part` equals its counterpart in `whole`.
fn is_part(part: &Dump, whole: &Dump) -> bool {
    let facts: BTreeMap<_, _> = whole.facts().collect();
    part.facts().all(|(name, value)| facts.get(name) == Some(&value))
        && part.ranges().all(|(address, bytes)| {
            let mut read = vec![0; bytes.len()];
            whole.read(address, &mut read).is_ok() && bytes == read
        })
}

#[test]
fn everything_is_read_back() {
    for dump in [Dump::default(), Dump::new(image()), example()] {
        let file = written(&dump);
        assert_eq!(Dump::read(&*file).unwrap(), dump);
        let (recovered, recovery) = Dump::recover(&*file).unwrap();
        assert_eq!(recovered, dump);
        assert_eq!((recovery.is_whole(), recovery.lost_bytes), (true, 0));
        assert_eq!(recovery.blocks, boundaries(&file).len() as u64 - 1);
    }
}

#[test]
fn a_range_of_several_blocks_is_one_again() {
    let dump = Dump::read(&*written(&example())).unwrap();
    assert_eq!(dump.present(0x7f00_0000_0000, usize::MAX), 3_000_000);
    assert_eq!(dump.ranges().count(), 3);
}

#[test]
fn a_file_that_is_cut_is_read_up_to_its_last_whole_block() {
    let (dump, file) = (example(), written(&example()));
    let boundaries = boundaries(&file);
    let near = boundaries.iter().flat_map(|&at| [at - 1, at, at + 1, at + 15, at + 16, at + 17]);
    for end in near.chain((16..file.len()).step_by(50_021)).filter(|&end| (16..file.len()).contains(&end)) {
        let (part, recovery) = Dump::recover(&file[..end]).unwrap();
        let whole = boundaries.iter().filter(|&&at| at <= end).count() - 1;
        assert_eq!(recovery.blocks, whole as u64, "{end}");
        assert_eq!(recovery.lost_bytes, (end - boundaries[whole]) as u64, "{end}");
        assert!(is_part(&part, &dump), "{end}");
        let error = Dump::read(&file[..end]).unwrap_err().to_string();
        assert!(
            error.contains("truncated") && error.contains(&format!("{:#x}", boundaries[whole])),
            "{error}"
        );
    }
    for end in 0..16 {
        let error = Dump::recover(&file[..end]).unwrap_err().to_string();
        assert!(error.contains("expected"), "{error}");
    }
}

#[test]
fn other_files_and_other_versions_are_refused_by_name() {
    let error = |file: &[u8]| Dump::recover(file).unwrap_err().to_string();
    assert!(error(b"").starts_with("expected a dump"), "{}", error(b""));
    assert!(
        error(b"RMEM and so on, whatever").starts_with("expected a dump, found a file that begins with [52")
    );
    let mut file = written(&Dump::default());
    file[8] = 9;
    assert_eq!(error(&file), "unsupported dump version: expected 1, found 9 (rdump, at byte 0x8)");
}

#[test]
fn a_damaged_block_is_left_out_and_the_others_are_read() {
    let (dump, file) = (example(), written(&example()));
    let boundaries = boundaries(&file);
    for pair in boundaries.windows(2) {
        for at in [pair[0] + 16 + 6, (pair[0] + 16).midpoint(pair[1]), pair[1] - 1] {
            let mut file = file.clone();
            file[at] ^= 0x10;
            let (part, recovery) = Dump::recover(&*file).unwrap();
            assert!(is_part(&part, &dump), "{at}");
            let first = &recovery.warnings[0];
            assert_eq!(
                (first.offset, first.lost_bytes),
                (Some(pair[0] as u64), (pair[1] - pair[0]) as u64),
                "{at}"
            );
            assert_eq!(recovery.blocks, boundaries.len() as u64 - 2, "{at}");
            assert!(Dump::read(&*file).is_err());
        }
    }
}

#[test]
fn data_after_a_damaged_header_is_lost() {
    let (dump, file) = (example(), written(&example()));
    let boundaries = boundaries(&file);
    for (index, &at) in boundaries[..boundaries.len() - 1].iter().enumerate() {
        for byte in 0..16 {
            let mut file = file.clone();
            file[at + byte] ^= 1;
            let (part, recovery) = Dump::recover(&*file).unwrap();
            assert!(is_part(&part, &dump));
            assert_eq!((recovery.blocks, recovery.lost_bytes), (index as u64, (file.len() - at) as u64));
        }
    }
}

#[test]
fn blocks_of_a_later_kind_are_passed_over() {
    let file = written(&example());
    let mut other = file[..16].to_vec();
    let mut block = file[16..boundaries(&file)[1]].to_vec();
    block[0] = 200;
    let mut crc = flate2::Crc::new();
    crc.update(&block[..12]);
    block[12..16].copy_from_slice(&crc.sum().to_le_bytes());
    other.extend(block);
    other.extend(&file[16..]);
    let (dump, recovery) = Dump::recover(&*other).unwrap();
    assert_eq!(dump, example());
    // The last block was written without it.
    assert_eq!(recovery.warnings.len(), 1, "{recovery:?}");
}

#[test]
fn an_output_that_is_full_is_an_error() {
    struct Full(usize);
    impl io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let room = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            self.0 = room;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let dump = example();
    let length = written(&dump).len();
    assert!(dump.write(Full(length)).is_ok());
    for room in [0, 16, 100, length / 2, length - 1] {
        assert_eq!(dump.write(Full(room)).unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}

#[test]
fn an_input_that_fails_is_an_error_of_the_input() {
    struct Failing<'f>(&'f [u8]);
    impl io::Read for Failing<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            match self.0.read(into)? {
                0 => Err(io::Error::other("the disk is on fire")),
                read => Ok(read),
            }
        }
    }
    let file = written(&example());
    for end in [0, 10, 16, 40, file.len()] {
        let error = Dump::recover(Failing(&file[..end])).unwrap_err().to_string();
        assert!(error.contains("on fire"), "{error}");
    }
}

#[test]
fn a_record_that_fits_into_no_block_is_refused() {
    let mut dump = Dump::default();
    dump.set_fact("large", vec![0; 5 << 20]);
    assert_eq!(dump.write(Vec::new()).unwrap_err().kind(), io::ErrorKind::InvalidInput);
}

/// A block with these contents and valid checksums.
fn block(kind: u8, content: &[u8]) -> Vec<u8> {
    let mut packer = zstd::bulk::Compressor::new(1).unwrap();
    packer.include_checksum(true).unwrap();
    let frame = packer.compress(content).unwrap();
    let length = |bytes: usize| u32::try_from(bytes).unwrap().to_le_bytes();
    let mut block = [&[kind, 0, 0, 0][..], &length(frame.len()), &length(content.len())].concat();
    let mut crc = flate2::Crc::new();
    crc.update(&block);
    block.extend(crc.sum().to_le_bytes());
    block.extend(frame);
    block
}

/// Random records: small, large and arbitrary numbers, and bytes.
fn records() -> impl Strategy<Value = Vec<u8>> {
    let small = (0_u32..40).prop_map(|number| number.to_le_bytes().to_vec());
    let number = any::<u32>().prop_map(|number| number.to_le_bytes().to_vec());
    let address = (0_u64..1 << 48).prop_map(|number| (number << 12).to_le_bytes().to_vec());
    let bytes = vec(any::<u8>(), 0..60);
    let page = any::<u8>().prop_map(|byte| vec![byte; 4096]);
    let part = proptest::prop_oneof![4 => small, 1 => number, 4 => address, 4 => bytes, 1 => page];
    vec(part, 0..12).prop_map(|parts| parts.concat())
}

fn dumps() -> impl Strategy<Value = Dump> {
    let memory = vec((0_u64..0x60_0000, 0_usize..40_000, any::<u8>()), 0..12);
    let facts = btree_map(".{0,8}", vec(any::<u8>(), 0..20), 0..4);
    (memory, facts, any::<bool>(), any::<u64>()).prop_map(|(memory, facts, has_image, base)| {
        let mut dump = if has_image { Dump::new(image()) } else { Dump::default() };
        for (offset, length, byte) in memory {
            dump.insert(base.saturating_add(offset), vec![byte; length]);
        }
        for (name, value) in facts {
            dump.set_fact(&name, value);
        }
        dump
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_dump_is_read_back(dump in dumps()) {
        let file = written(&dump);
        prop_assert_eq!(Dump::read(&*file).unwrap(), dump);
    }

    /// The error despite valid checksums.
    #[test]
    fn random_blocks_cause_no_panic(blocks in vec((0_u8..9, records()), 0..8)) {
        let mut file = written(&Dump::default())[..16].to_vec();
        let mut content_bytes = 0;
        for (kind, content) in &blocks {
            file.extend(block(*kind, content));
            content_bytes += content.len() as u64;
        }
        let (dump, recovery) = Dump::recover(&*file).unwrap();
        prop_assert!(dump.held_bytes() <= content_bytes);
        prop_assert!(recovery.blocks <= blocks.len() as u64);
        for (address, bytes) in dump.ranges() {
            prop_assert_eq!(dump.bytes(address, bytes.len()), Some(bytes));
        }
        // The result is a valid dump.
        prop_assert_eq!(Dump::read(&*written(&dump)).unwrap(), dump);
    }

    #[test]
    fn damage_is_noticed_and_causes_no_panic(
        dump in dumps(),
        places in vec((any::<proptest::sample::Index>(), 1_u8..), 1..8),
        end in any::<proptest::sample::Index>(),
    ) {
        let mut file = written(&dump);
        let whole = file.clone();
        for (place, change) in places {
            let at = place.index(file.len());
            file[at] ^= change;
        }
        file.truncate(end.index(file.len()) + 1);
        if let Ok((part, recovery)) = Dump::recover(&*file) {
            prop_assert!(is_part(&part, &dump));
            prop_assert_eq!(recovery.is_whole(), file == whole);
        }
        prop_assert_eq!(Dump::read(&*file).is_ok(), file == whole);
    }
}

/// The most memory that this program has had, in bytes.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn zeros_in_a_file_take_no_memory() {
    const BYTES: u32 = 4_000_000;
    let mut file = written(&Dump::default())[..16].to_vec();
    let blocks = 160;
    for number in 0..blocks {
        let mut content = 1_u32.to_le_bytes().to_vec();
        content.extend((0x7000_0000_0000 + number * u64::from(BYTES)).to_le_bytes());
        content.extend(BYTES.to_le_bytes());
        content.resize(content.len() + usize::try_from(BYTES).unwrap(), 0);
        file.extend(block(6, &content));
    }
    file.extend(block(0, &blocks.to_le_bytes()));
    let before = peak_bytes();
    let dump = Dump::read(&*file).unwrap();
    let all = blocks * u64::from(BYTES);
    assert_eq!((dump.held_bytes(), dump.spans().count()), (all, 1));
    assert_eq!(dump.array(0x7000_0000_0000 + all - 8), Some([0; 8]));
    assert_eq!(dump.words(0x7000_0000_0000, all).filter(|&word| word == 0).count() as u64, all / 8);
    assert!(peak_bytes() - before < all / 4, "{} bytes more for {all}", peak_bytes() - before);
}
