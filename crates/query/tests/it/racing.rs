//! Concurrent writers, compactions and queries.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;

use borehole_query::Lake;
use borehole_testkit::Scratch;

use crate::world::{add_folded, number};

/// The number of inputs of each writer.
const INPUTS: i64 = 25;

#[test]
fn queries_see_each_input_once_during_adds_and_compactions() {
    let scratch = Scratch::new();
    let name = scratch.path("lake").to_str().unwrap().to_owned();
    Lake::open_or_create(&name).unwrap();
    let (added, is_over) = (AtomicI64::new(0), AtomicBool::new(false));
    let write = |writer: i64| {
        let lake = Lake::open(&name).unwrap();
        for input in 0..INPUTS {
            // All share `main;both`, so that writers compete to add its stack.
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
                assert_eq!(value, count, "a stack is stored twice");
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
