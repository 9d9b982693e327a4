//! Stacks of native code: where a file is loaded makes no difference, its build does, and names come later.

use borehole::model::{
    Context, Frame, NativeFrame, NativeModule, ProfileSink as _, Recovery, Sample, Segment, StatedModules,
};
use borehole_query::{InputDetails, Lake, NamedCode, UnnamedCode};
use borehole_testkit::raw_profiles::{MappedFile, raw_otlp, raw_pprof};

use crate::world::{add, lake, number, rows, source};

const FILE: MappedFile<'_> = MappedFile {
    path: "/opt/shop",
    build_id: "c0ffee12345678",
    start: 0x5000,
    end: 0x6000,
    file_offset: 0x1000,
};

/// The stacks of the samples, and the number of rows of each.
fn stacks(lake: &Lake) -> Vec<String> {
    let sql = "SELECT folded(stack) AS names, count(*) AS n FROM samples JOIN stacks USING (stack_id) \
               GROUP BY stack_id, stack ORDER BY names, n";
    rows(lake, sql).iter().map(|row| row.join(" ")).collect()
}

fn add_bytes(lake: &Lake, name: &str, bytes: &[u8]) {
    add(lake, source(name, "shop", name.as_bytes()), bytes).unwrap();
}

/// Names the code of one build.
fn names(code: &UnnamedCode) -> Vec<NamedCode> {
    let function = |name: &str, line| NamedCode {
        function: name.to_owned(),
        file: Some("/src/shop.c".to_owned()),
        line: Some(line),
    };
    match (&*code.build_id, code.file_offset) {
        ("c0ffee12345678", 0x1010) => vec![function("inlined", 7), function("buy", 9)],
        _ => Vec::new(),
    }
}

#[test]
fn addresses_are_split_by_build_and_not_by_where_a_file_is_loaded() {
    let (_scratch, lake) = lake();
    let elsewhere = MappedFile { start: 0x7000, end: 0x8000, ..FILE };
    let other = MappedFile { build_id: "decade00", ..FILE };
    add_bytes(&lake, "here", &raw_pprof(&FILE, &[0x5010, 0x5010]));
    add_bytes(&lake, "there", &raw_pprof(&elsewhere, &[0x7010]));
    add_bytes(&lake, "sent", &raw_otlp(&elsewhere, &[0x7010]));
    add_bytes(&lake, "other", &raw_pprof(&other, &[0x5010]));
    assert_eq!(stacks(&lake), ["shop@c0ffee12+0x1010 4", "shop@decade00+0x1010 1"]);
    let code = "SELECT DISTINCT frames[1]['module'], frames[1]['build_id'], frames[1]['file_offset'] FROM stacks ORDER BY 2";
    let expected = [["/opt/shop", "c0ffee12345678", "4112"], ["/opt/shop", "decade00", "4112"]];
    assert_eq!(rows(&lake, code), expected);
}

#[test]
fn names_come_later_and_stay() {
    let (_scratch, lake) = lake();
    add_bytes(&lake, "one", &raw_pprof(&FILE, &[0x5010, 0x5020]));
    let done = lake.symbolize(&mut names).unwrap();
    assert_eq!((done.named, done.unknown, done.files), (1, 1, 1));
    let named = ["buy;inlined 1", "shop@c0ffee12+0x1020 1"];
    assert_eq!(stacks(&lake), named);
    let lines = "SELECT frames[2]['file'], frames[2]['line'], frames[1]['line'], frames[1]['file_offset'] FROM stacks \
                 WHERE leaf(stack) = 'inlined'";
    assert_eq!(rows(&lake, lines), [["/src/shop.c", "7", "9", "4112"]]);
    assert_eq!(lake.symbolize(&mut names).unwrap().files, 0, "nothing new is known");
    // The same stack without names does not hide them.
    for name in ["two", "three"] {
        add_bytes(&lake, name, &raw_pprof(&FILE, &[0x5010]));
    }
    for _ in 0..2 {
        assert_eq!(stacks(&lake), ["buy;inlined 3", named[1]]);
        assert_eq!(number(&lake, "SELECT count(*) FROM stacks"), 2);
        lake.compact().unwrap();
    }
    assert_eq!(lake.check().unwrap().findings, []);
}

/// Adds a sample of a recording that states the file of its code behind its samples.
fn add_recording(lake: &Lake, name: &str, build_id: &str, modules: &StatedModules) -> Option<StatedModules> {
    let mut adding = lake.adding();
    let details = InputDetails { modules: modules.clone(), ..source(name, "shop", name.as_bytes()) };
    let (tables, mut addition) = adding.input(details);
    let mut text = |text: &str| tables.intern_string(text.as_bytes()).unwrap();
    let [function, unnamed, module, key] = ["main", "[shop]", "shop", NativeModule::KEY].map(&mut text);
    let stated = text(&format!("{build_id} 1000-2000 /opt/shop"));
    let mut frame = |function, offset| {
        let native = Some(NativeFrame { module, offset: Some(offset) });
        tables.intern_frame(&Frame { native, ..Frame::named(function) }).unwrap()
    };
    let frames = [frame(unnamed, 0x1010), frame(function, 8)];
    let stack = tables.intern_stack_leaf_first(&frames).unwrap();
    let at = Context { tables, segment: &Segment::default() };
    addition.segment(at).unwrap();
    let _ = addition.sample(at, &Sample { stack, count: 1, ..Sample::default() }).unwrap();
    addition.metadata(at, key, stated).unwrap();
    let late = addition.late_modules().cloned();
    match late.is_some() {
        true => addition.abandon(),
        false => drop(addition.commit(tables, &Recovery::default()).unwrap()),
    }
    late
}

#[test]
fn recordings_that_state_their_files_at_the_end_are_read_again() {
    let (_scratch, lake) = lake();
    for (name, build_id) in [("one", "c0ffee12345678"), ("two", "c0ffee12345678"), ("three", "decade00")] {
        let late = add_recording(&lake, name, build_id, &StatedModules::default()).unwrap();
        assert_eq!(add_recording(&lake, name, build_id, &late), None);
    }
    assert_eq!(stacks(&lake), ["main;[shop] 1", "main;[shop] 2"]);
    assert_eq!(number(&lake, "SELECT count(*) FROM stacks"), 2);
    lake.symbolize(&mut names).unwrap();
    assert_eq!(stacks(&lake), ["main;[shop] 1", "main;buy;inlined 2"]);
}
