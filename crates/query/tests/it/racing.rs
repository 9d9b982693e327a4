//! Several who write, one who tidies and one who asks, at once.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;

use borehole_query::Lake;
use borehole_testkit::Scratch;

use crate::world::{add_folded, number};

/// How many inputs each writer adds.
const INPUTS: i64 = 25;

#[test]
fn questions_see_each_input_once_while_others_add_and_tidy() {
    let scratch = Scratch::new();
    let name = scratch.path("lake").to_str().unwrap().to_owned();
    Lake::open_or_create(&name).unwrap();
    let (added, is_over) = (AtomicI64::new(0), AtomicBool::new(false));
    let write = |writer: i64| {
        let lake = Lake::open(&name).unwrap();
        for input in 0..INPUTS {
            // All have `main;both` in common, so that writers meet over who adds its stack.
            add_folded(&lake, "web", &format!("main;both 1\nmain;w{writer};i{input} 1\n"));
            added.fetch_add(2, Ordering::SeqCst);
        }
    };
    let mut compactions = 0;
    thread::scope(|scope| {
        let writers = [scope.spawn(|| write(1)), scope.spawn(|| write(2))];
        scope.spawn(|| {
            let lake = Lake::open(&name).unwrap();
            while !is_over.load(Ordering::SeqCst) {
                let at_least = added.load(Ordering::SeqCst);
                let sql = "SELECT sum(value), count(*) FROM samples JOIN stacks USING (stack_id)";
                let session = lake.session().unwrap();
                let mut answer = session.ask(sql).unwrap();
                let row = answer.next_rows().unwrap().unwrap().remove(0);
                let [value, count] = [0, 1].map(|column| row[column].to_text().parse::<i64>().unwrap_or(0));
                assert_eq!(value, count, "a stack is there twice");
                assert!(value >= at_least && value <= 4 * INPUTS && value % 2 == 0, "{at_least} {value}");
            }
        });
        let lake = Lake::open(&name).unwrap();
        while writers.iter().any(|writer| !writer.is_finished()) {
            lake.compact().unwrap();
            compactions += 1;
        }
        is_over.store(true, Ordering::SeqCst);
    });
    assert!(compactions > 0);
    let lake = Lake::open(&name).unwrap();
    assert_eq!(number(&lake, "SELECT sum(value) FROM samples"), 4 * INPUTS);
    assert_eq!(number(&lake, "SELECT count(*) FROM stacks"), 2 * INPUTS + 1);
    assert!(lake.check().unwrap().findings.is_empty());
}
