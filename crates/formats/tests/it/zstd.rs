//! Zstandard frames around profiles: whole, in a row, between other data, truncated and damaged.

use std::io::{self, Read as _, Write as _};

use borehole_formats::{ReadError, ReadOptions, Recovery, folded, rbt, trc};
use borehole_model::{Count, Tables};
use borehole_testkit::read_corpus;
use borehole_wire::envelope::{Damage, Envelope, GzipWriter, MemberFault, Method};
use borehole_wire::zstd::ZstdWriter;

const RBT: &str = "zstd/realistic_54k_ts.rbt.zst";
const TRC: &str = "zstd/real_032_cpu.bin.zst";
const FOLDED: &[u8] = b"main;query 3\nmain 1\n";

/// The output for `bytes`, read `room` bytes at a time, and the error at its end.
fn unpack(bytes: &[u8], room: usize) -> (Vec<u8>, Option<Damage>) {
    let mut envelope = Envelope::new(bytes);
    let (mut all, mut buffer) = (Vec::new(), vec![0; room]);
    loop {
        match envelope.read(&mut buffer) {
            Ok(0) => return (all, None),
            Ok(count) => all.extend_from_slice(&buffer[..count]),
            Err(error) => return (all, Some(Damage::of(&error).unwrap())),
        }
    }
}

fn frame(bytes: &[u8]) -> Vec<u8> {
    let mut writer = ZstdWriter::new(Vec::new()).unwrap();
    writer.write_all(bytes).unwrap();
    writer.complete().unwrap()
}

fn member(bytes: &[u8]) -> Vec<u8> {
    let mut writer = GzipWriter::new(Vec::new());
    writer.write_all(bytes).unwrap();
    writer.complete().unwrap()
}

fn plain_trc() -> Vec<u8> {
    unpack(&read_corpus("trc/in/real_032_cpu.bin.gz"), 4096).0
}

fn import_rbt(bytes: &[u8], options: &ReadOptions) -> Result<Recovery, ReadError> {
    rbt::import(bytes, options, &mut Tables::default(), &mut Count::default())
}

fn import_trc(bytes: &[u8], options: &ReadOptions) -> Result<Recovery, ReadError> {
    let spool = io::Cursor::new(Vec::new());
    trc::import(bytes, options, spool, &mut Tables::default(), &mut Count::default())
}

/// The ends of the blocks of a frame with a size of four bytes and one segment.
///
/// Source: RFC 8878, sections 3.1.1.1 and 3.1.1.2.
fn block_ends(frame: &[u8]) -> Vec<usize> {
    assert_eq!(frame[4] & 0b1110_0011, 0b1010_0000, "another header");
    let (mut at, mut ends) = (9, Vec::new());
    loop {
        let header = u32::from_le_bytes([frame[at], frame[at + 1], frame[at + 2], 0]);
        let size = if header >> 1 & 3 == 1 { 1 } else { header >> 3 };
        at += 3 + usize::try_from(size).unwrap();
        ends.push(at);
        if header & 1 == 1 {
            return ends;
        }
    }
}

#[test]
fn files_of_the_zstd_command_are_decompressed() {
    let expected = [(RBT, read_corpus("rbt/realistic_54k_ts.rbt")), (TRC, plain_trc())]
        .into_iter()
        .chain(["two", "skippable", "long_27"].map(|name| (name, FOLDED.to_vec())));
    for (name, plain) in expected {
        let path = if name.contains('/') { name.to_owned() } else { format!("zstd/{name}.folded.zst") };
        let packed = read_corpus(&path);
        for room in [1, 7, 4096, 1 << 20] {
            let (found, damage) = unpack(&packed, room);
            assert!(found == plain && damage.is_none(), "{name} {room}: {} {damage:?}", found.len());
        }
    }
}

#[test]
fn the_profile_is_the_same() {
    let options = ReadOptions::default();
    let count = |recovery: Result<Recovery, ReadError>| {
        let recovery = recovery.unwrap();
        (recovery.samples, recovery.events, recovery.segments, recovery.is_clean())
    };
    let plain = count(import_rbt(&read_corpus("rbt/realistic_54k_ts.rbt"), &options));
    assert_eq!(plain, (54_000, 0, 1, true));
    assert_eq!(count(import_rbt(&read_corpus(RBT), &options)), plain);
    let plain = count(import_trc(&plain_trc(), &options));
    assert!(plain.1 > 1000 && plain.3, "{plain:?}");
    assert_eq!(count(import_trc(&read_corpus(TRC), &options)), plain);
    let packed = read_corpus("zstd/two.folded.zst");
    let text = io::BufReader::new(Envelope::new(&packed[..]));
    let recovery = folded::import(text, &options, &mut Tables::default(), &mut Count::default());
    assert_eq!(recovery.unwrap().samples, 4);
}

#[test]
fn frames_members_and_raw_parts_come_in_any_order() {
    let options = ReadOptions::default();
    let (trace, events) = (read_corpus("rbt/tiny_one.rbt"), plain_trc());
    let in_trace = import_rbt(&trace, &options).unwrap().samples;
    let in_events = import_trc(&events, &options).unwrap().events;
    let forms = |bytes: &[u8]| [bytes.to_vec(), member(bytes), frame(bytes)];
    for (first, first_events) in forms(&trace).iter().zip(forms(&events)) {
        for (second, second_events) in forms(&trace).iter().zip(forms(&events)) {
            let recovery =
                import_rbt(&[first, second, first].map(|part| &part[..]).concat(), &options).unwrap();
            assert!(recovery.samples == 3 * in_trace && recovery.is_clean(), "{recovery:?}");
            let parts = [&first_events[..], &second_events, &first_events].concat();
            let recovery = import_trc(&parts, &options).unwrap();
            assert!(recovery.events == 3 * in_events && recovery.is_clean(), "{recovery:?}");
        }
    }
}

#[test]
fn empty_frames_and_zero_padding_are_accepted() {
    let trace = read_corpus("rbt/tiny_one.rbt");
    let bytes = [frame(b""), frame(&trace), frame(b""), vec![0; 512]].concat();
    let recovery = import_rbt(&bytes, &ReadOptions::default()).unwrap();
    assert!(recovery.samples == 1 && recovery.is_clean(), "{recovery:?}");
    assert_eq!(recovery.notes[0].message, "512 zero bytes after a zstd frame");
}

#[test]
fn every_whole_block_before_a_cut_comes_out() {
    let (packed, plain) = (read_corpus(RBT), read_corpus("rbt/realistic_54k_ts.rbt"));
    let ends = block_ends(&packed);
    assert!(ends.len() > 3, "{ends:?}");
    let mut before = 0;
    for (index, &end) in ends.iter().enumerate() {
        let next = ends.get(index + 1).unwrap_or(&packed.len()) - 1;
        let cuts = [end, end + 2, next].map(|cut| [1000, 1 << 20].map(|room| (cut, room)));
        let found: Vec<_> = cuts.concat().iter().map(|&(cut, room)| unpack_cut(&packed, cut, room)).collect();
        assert!(found.iter().all(|bytes| *bytes == found[0]) && plain.starts_with(&found[0]), "{end}");
        assert!(found[0].len() > before, "{end}: {before}");
        before = found[0].len();
    }
    assert_eq!(before, plain.len());
    assert_eq!(unpack_cut(&packed, ends[0] - 1, 1000), b"");
    assert_eq!(unpack_cut(&packed, 4, 1000), b"");
}

/// The output for the first `cut` bytes, before the error that names the position of the cut.
fn unpack_cut(packed: &[u8], cut: usize, room: usize) -> Vec<u8> {
    let (found, damage) = unpack(&packed[..cut], room);
    let expected =
        Damage { member_offset: 0, offset: cut as u64, method: Method::Zstd, fault: MemberFault::Truncated };
    assert_eq!(damage, Some(expected), "{cut}");
    found
}

#[test]
fn a_cut_frame_is_a_warning_that_says_where() {
    let (packed, options) = (read_corpus(RBT), ReadOptions::default());
    let ends = block_ends(&packed);
    let cut = ends[ends.len() / 2] + 10;
    let recovery = import_rbt(&packed[..cut], &options).unwrap();
    assert!(recovery.samples > 1000 && recovery.samples < 54_000, "{}", recovery.samples);
    let message = format!(
        "truncated zstd frame: starts at byte 0x0 of the compressed file, is damaged at byte {cut:#x}"
    );
    assert_eq!(recovery.warnings.last().unwrap().message, message);
    let packed = read_corpus(TRC);
    let recovery = import_trc(&packed[..packed.len() - 1], &options).unwrap();
    // Only the checksum is missing.
    assert_eq!(recovery.events, import_trc(&plain_trc(), &options).unwrap().events);
    assert!(recovery.warnings[0].message.starts_with("truncated zstd frame: "), "{:?}", recovery.warnings);
}

#[test]
fn data_before_a_wrong_block_and_the_next_frame_are_read() {
    let (mut packed, plain) = (read_corpus(RBT), read_corpus("rbt/realistic_54k_ts.rbt"));
    let ends = block_ends(&packed);
    // A block of the reserved type.
    packed[ends[1]] |= 0b110;
    for room in [1000, 1 << 20] {
        let (found, damage) = unpack(&packed, room);
        assert!(found == unpack_cut(&packed, ends[1], room) && plain.starts_with(&found), "{}", found.len());
        let expected = Damage {
            member_offset: 0,
            offset: ends[1] as u64,
            method: Method::Zstd,
            fault: MemberFault::Invalid,
        };
        assert_eq!(damage, Some(expected));
    }
    let bytes = [&packed[..], &frame(&plain), &member(&plain)].concat();
    assert!(import_rbt(&bytes, &ReadOptions::default()).is_err());
    let recovery = import_rbt(&bytes, &ReadOptions::lenient()).unwrap();
    assert!(recovery.samples > 2 * 54_000 && recovery.samples < 3 * 54_000, "{}", recovery.samples);
    let told = |start: &str| recovery.warnings.iter().any(|warning| warning.message.starts_with(start));
    assert!(told("invalid zstd frame: starts at byte 0x0 of the compressed file"), "{:?}", recovery.warnings);
}

#[test]
fn frames_hidden_in_a_damaged_frame_are_found() {
    let trace = read_corpus("rbt/tiny_one.rbt");
    let (mut first, others) = (frame(&trace), frame(&trace).repeat(2_000));
    assert!(others.len() > 100 << 10, "{}", others.len());
    // A stored block of 100 KiB that is not the last one.
    let header = (100u32 << 10) << 3;
    first[6..9].copy_from_slice(&header.to_le_bytes()[..3]);
    let recovery = import_rbt(&[first, others].concat(), &ReadOptions::lenient()).unwrap();
    assert!(recovery.samples >= 1_999, "{}", recovery.samples);
}

#[test]
fn a_wrong_checksum_is_reported_after_all_data() {
    let mut packed = frame(FOLDED);
    *packed.last_mut().unwrap() ^= 1;
    let (found, damage) = unpack(&packed, 100);
    assert!(found == FOLDED && damage.unwrap().fault == MemberFault::Invalid, "{damage:?}");
}

#[test]
fn a_window_beyond_the_limit_is_refused() {
    let (found, damage) = unpack(&read_corpus("zstd/long_28.folded.zst"), 100);
    let message = "unsupported zstd frame: starts at byte 0x0 of the compressed file, \
                   needs a window of more than 128 MiB";
    assert_eq!((&found[..], damage.unwrap().to_string().as_str()), (&b""[..], message));
}

#[test]
fn no_changed_byte_causes_a_panic() {
    let trace = read_corpus("rbt/tiny_one.rbt");
    let events = read_corpus("trc/in/ann_then_same_schema.bin");
    let rbt = [frame(&trace), member(&trace), frame(&trace)].concat();
    let trc = [frame(&events), events.clone(), frame(&events)].concat();
    for mask in [1, 0x80, 0xff] {
        for at in 0..rbt.len() {
            let mut bytes = rbt.clone();
            bytes[at] ^= mask;
            let recovery = import_rbt(&bytes, &ReadOptions::lenient()).unwrap();
            assert!(recovery.samples >= 1, "{at} {mask}: {recovery:?}");
            let _ = import_rbt(&bytes, &ReadOptions::default());
        }
        for at in 0..trc.len() {
            let mut bytes = trc.clone();
            bytes[at] ^= mask;
            import_trc(&bytes, &ReadOptions::lenient()).unwrap();
            let _ = import_trc(&bytes, &ReadOptions::default());
        }
    }
}
