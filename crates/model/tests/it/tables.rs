//! Strings, frames, stacks and labels are stored once each.

use borehole_model::{Frame, FrameId, Label, LabelValue, NameParts, NativeFrame, Status, Tables};

fn frame(tables: &mut Tables, name: &str) -> FrameId {
    let function = tables.intern_string(name.as_bytes()).unwrap();
    tables.intern_frame(&Frame::named(function)).unwrap()
}

#[test]
fn equal_strings_are_one_and_ids_count_from_one() {
    let mut tables = Tables::default();
    let texts: [&[u8]; 4] = [b"", b"a", b"\xff\xfe", b"a\0"];
    let ids = texts.map(|text| tables.intern_string(text).unwrap());
    assert_eq!(ids.map(|id| (id.get(), id.index())), [(1, 0), (2, 1), (3, 2), (4, 3)]);
    assert_eq!(texts.map(|text| tables.intern_string(text).unwrap()), ids);
    assert_eq!(ids.map(|id| tables.string(id).to_vec()), texts.map(<[u8]>::to_vec));
    assert_eq!(texts.map(|text| tables.find_string(text)), ids.map(Some));
    assert_eq!((tables.find_string(b"b"), tables.string_count()), (None, 4));
}

#[test]
fn many_strings_keep_their_ids_while_the_table_grows() {
    let mut tables = Tables::default();
    let text = |number: u32| format!("function_{number}").into_bytes();
    let ids: Vec<_> = (0..10_000).map(|number| tables.intern_string(&text(number)).unwrap()).collect();
    for (number, id) in (0..).zip(&ids) {
        assert_eq!(tables.string(*id), text(number));
        assert_eq!(tables.find_string(&text(number)), Some(*id));
    }
}

#[test]
fn frames_differ_in_any_field() {
    let mut tables = Tables::default();
    let name = tables.intern_string(b"f").unwrap();
    let plain = Frame::named(name);
    let parts = NameParts { namespace: name, class: name, method: name };
    let frames = [
        plain,
        Frame { parts: Some(parts), ..plain },
        Frame { file: Some(name), ..plain },
        Frame { line: Some(0), ..plain },
        Frame { end_line: Some(0), ..plain },
        Frame { column: Some(0), ..plain },
        Frame { end_column: Some(0), ..plain },
        Frame { opcode: Some(name), ..plain },
        Frame { native: Some(NativeFrame { module: name, offset: None, file_offset: None }), ..plain },
    ];
    let ids = frames.map(|frame| tables.intern_frame(&frame).unwrap());
    assert_eq!(tables.frame_count(), frames.len());
    assert_eq!(frames.map(|frame| tables.intern_frame(&frame).unwrap()), ids);
    assert_eq!(ids.map(|id| tables.frame(id)), frames);
}

#[test]
fn stacks_share_their_callers() {
    let mut tables = Tables::default();
    let [main, run, a, b] = ["main", "run", "a", "b"].map(|name| frame(&mut tables, name));
    let first = tables.intern_stack_leaf_first(&[a, run, main]).unwrap().unwrap();
    let second = tables.intern_stack_leaf_first(&[b, run, main]).unwrap().unwrap();
    assert_ne!(first, second);
    assert_eq!(tables.parent(first), tables.parent(second));
    assert_eq!(tables.stack_count(), 4);
    assert_eq!((tables.leaf(second), tables.depth(second)), (b, 3));
    let root = tables.intern_stack(None, main).unwrap();
    assert_eq!((tables.parent(root), tables.depth(root)), (None, 1));
    let frames = tables.frames_leaf_first(Some(first));
    assert_eq!((frames.len(), frames.collect::<Vec<_>>()), (3, vec![a, run, main]));
}

#[test]
fn the_empty_stack_is_none() {
    let mut tables = Tables::default();
    assert_eq!(tables.intern_stack_leaf_first(&[]), Ok(None));
    assert_eq!(tables.frames_leaf_first(None).len(), 0);
    assert_eq!(tables.stack_count(), 0);
}

#[test]
fn deep_recursion_keeps_its_depth() {
    let mut tables = Tables::default();
    let main = frame(&mut tables, "main");
    let stack = tables.intern_stack_leaf_first(&vec![main; 100_000]).unwrap().unwrap();
    assert_eq!(tables.depth(stack), 100_000);
    assert_eq!(tables.frames_leaf_first(Some(stack)).count(), 100_000);
}

#[test]
fn label_sets_keep_order_and_duplicates() {
    let mut tables = Tables::default();
    let [a, b] = [b"a", b"b"].map(|text| tables.intern_string(text).unwrap());
    let text = |key, value| Label { key, value: LabelValue::Text(value) };
    let number = |value, unit| Label { key: a, value: LabelValue::Number { value, unit } };
    let sets: [&[Label]; 7] = [
        &[],
        &[text(a, b)],
        &[text(a, b), text(b, a)],
        &[text(b, a), text(a, b)],
        &[text(a, b), text(a, b)],
        &[number(1, None)],
        &[number(1, Some(b))],
    ];
    let ids = sets.map(|set| tables.intern_labels(set).unwrap());
    assert_eq!(tables.labels_count(), sets.len());
    assert_eq!(sets.map(|set| tables.intern_labels(set).unwrap()), ids);
    assert_eq!(ids.map(|id| tables.labels(id).to_vec()), sets.map(<[Label]>::to_vec));
}

#[test]
fn the_flags_of_a_thread_have_names_from_the_lowest_bit_up() {
    let names = |bits| Status(bits).names().collect::<Vec<_>>();
    assert_eq!(names(0), [""; 0]);
    assert_eq!(names(0b10_0011), ["has_gil", "on_cpu", "main_thread"]);
    assert_eq!(names(0xff), Status::NAMES);
}
