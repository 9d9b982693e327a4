//! Every file of the corpus, frame by frame, compared with the reference decoder 0.5.4.

use std::fs::File;
use std::io::Read as _;

use borehole_trc::ReadOptions;
use borehole_wire::envelope::Envelope;
use serde_json::{Value, json};

use super::{corpus, input, names, read};

/// The lines of the reference, with the last one separate; `None` if it does not open the file.
fn reference(name: &str) -> Option<(Vec<Value>, Value)> {
    let folder = corpus().join("expected");
    let plain = folder.join(format!("{name}.0.5.4.owned.jsonl"));
    let file = File::open(&plain)
        .or_else(|_| File::open(folder.join(format!("{name}.0.5.4.owned.jsonl.gz"))))
        .unwrap();
    let mut text = String::new();
    Envelope::new(file).read_to_string(&mut text).unwrap();
    let mut lines: Vec<Value> =
        text.lines().map(|line| without_float_digits(serde_json::from_str(line).unwrap())).collect();
    let end = lines.pop().unwrap();
    (end["opened"] == true).then_some((lines, end))
}

/// Floats are compared by their bits, because their digits differ between printers.
fn without_float_digits(mut value: Value) -> Value {
    match &mut value {
        Value::Object(members) => {
            members.remove("f64");
            members.values_mut().for_each(|member| *member = without_float_digits(member.take()));
        }
        Value::Array(values) => {
            values.iter_mut().for_each(|value| *value = without_float_digits(value.take()));
        }
        _ => {}
    }
    value
}

/// Whether two lines are equivalent. An event of a type without timestamps has no time here, and the time of the previous
/// event in the reference.
fn same(ours: &Value, theirs: &Value) -> bool {
    let mut theirs = theirs.clone();
    if ours["t"] == "event" && ours["ts"].is_null() {
        theirs["ts"] = json!(null);
    }
    *ours == theirs
}

fn assert_same(name: &str, ours: &[Value], theirs: &[Value]) {
    for (number, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        assert!(same(ours, theirs), "{name}, line {}:\n{ours}\n{theirs}", number + 1);
    }
    assert_eq!(ours.len(), theirs.len(), "{name}");
}

fn is_whole(end: &Value) -> bool {
    end["error"].is_null() && end["pos"] == end["len"]
}

#[test]
fn files_that_the_reference_reads_completely_are_read_completely() {
    let mut compared = 0;
    for name in names() {
        let Some((theirs, end)) = reference(&name).filter(|(_, end)| is_whole(end)) else { continue };
        let (ours, error, recovery) = read(&input(&name), ReadOptions::default());
        if name.starts_with("bad_version") {
            assert!(error.unwrap().is_unsupported() && ours.is_empty(), "{name}");
            let (ours, error, recovery) = read(&input(&name), ReadOptions::lenient());
            assert!(error.is_none() && recovery.warnings.len() == 1, "{name}");
            assert_same(&name, &ours, &theirs);
            continue;
        }
        assert!(error.is_none(), "{name}: {error:?}");
        assert_same(&name, &ours, &theirs);
        assert_eq!(json!(recovery.events), end["events"], "{name}");
        assert_eq!(recovery.lost_bytes, 0, "{name}");
        compared += 1;
    }
    assert_eq!(compared, 43);
}

/// Files of which more is read here than by the reference, and why.
const BEYOND_THE_REFERENCE: [(&str, &str); 1] =
    [("ann_then_same_schema.bin", "the same schema again, behind annotations, is the same schema")];

#[test]
fn errors_of_the_reference_are_explained_here() {
    for name in names() {
        let Some((theirs, _)) = reference(&name).filter(|(_, end)| !is_whole(end)) else { continue };
        let (ours, error, recovery) = read(&input(&name), ReadOptions::default());
        if BEYOND_THE_REFERENCE.iter().any(|(other, _)| *other == name) {
            assert!(error.is_none() && ours.len() > theirs.len(), "{name}");
            continue;
        }
        assert_same(&name, &ours, &theirs);
        assert!(error.is_some() || !recovery.is_clean(), "{name} ends silently");
    }
}

#[test]
fn files_that_the_reference_rejects_are_errors_or_empty() {
    for name in names() {
        if reference(&name).is_some() {
            continue;
        }
        let (ours, error, recovery) = read(&input(&name), ReadOptions::default());
        match name.as_str() {
            // Its reader ignores the rest of the file; the member itself is intact.
            "gz_trailing_garbage.bin.gz" => {
                assert!(error.is_none() && ours.len() == 9 + 1, "{name} {ours:?}");
            }
            _ => assert!(ours.is_empty(), "{name}"),
        }
        assert!(error.is_some() || !recovery.is_clean(), "{name} ends silently");
    }
}

/// The lines of a table: the results of the decoders for each variant of a file.
fn table(name: &str) -> Vec<Value> {
    let mut text = String::new();
    let file = File::open(corpus().join("expected").join(format!("{name}.jsonl.gz"))).unwrap();
    Envelope::new(file).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn index(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

#[test]
fn every_prefix_yields_the_events_that_are_whole_in_it() {
    for base in ["v032_small", "v054_small"] {
        let whole = input(&format!("{base}.bin"));
        let (all, _, _) = read(&whole, ReadOptions::default());
        for row in table(&format!("prefixes_{base}")) {
            let cut = index(&row["len"]);
            let (ours, error, recovery) = read(&whole[..cut], ReadOptions::default());
            assert!(error.is_none(), "{base} cut at {cut}: {error:?}");
            assert!(all.starts_with(&ours), "{base} cut at {cut}");
            assert_eq!(json!(recovery.events), row["0.5.4 owned"]["events"], "{base} cut at {cut}");
            let end = row["0.5.4 owned"]["pos"].as_u64().unwrap_or_default();
            let lost = (cut as u64).saturating_sub(end);
            assert_eq!(
                (recovery.lost_bytes, recovery.is_clean()),
                (lost, lost == 0 && cut > 0),
                "{base} cut at {cut}"
            );
        }
    }
}

#[test]
fn every_change_of_a_byte_yields_the_events_that_the_reference_yields() {
    let mut changes = 0;
    for base in ["v032_small", "v054_small"] {
        let whole = input(&format!("{base}.bin"));
        for row in table(&format!("mutations_{base}")) {
            let (at, byte) = (index(&row["at"]), u8::try_from(index(&row["byte"])).unwrap());
            let mut bytes = whole.clone();
            match row["kind"].as_str().unwrap() {
                "set" => bytes[at] = byte,
                "remove" => drop(bytes.remove(at)),
                "insert" => bytes.insert(at, byte),
                other => panic!("unknown kind {other}"),
            }
            let (_, error, recovery) = read(&bytes, ReadOptions::default());
            let theirs = &row["0.5.4 owned"];
            // Here, the version byte is checked; the reference has no limit for the length of a frame.
            if error.as_ref().is_some_and(|error| error.is_unsupported() && error.offset() == Some(4)) {
                continue;
            }
            assert!(recovery.events >= theirs["events"].as_u64().unwrap(), "{base}: {row}: {error:?}");
            if theirs["error"].is_null() {
                assert_eq!(json!(recovery.events), theirs["events"], "{base}: {row}: {error:?}");
            }
            let whole = theirs["opened"] == true && theirs["pos"] == json!(bytes.len());
            assert!(whole || error.is_some() || !recovery.is_clean(), "{base}: {row} ends without an error");
            changes += 1;
        }
    }
    assert!(changes > 7900, "{changes}");
}
