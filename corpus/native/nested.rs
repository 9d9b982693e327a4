//! Blocks in nested calls: closures that the standard library calls, a trait object, and a thread. Says `ready` when it does, and
//! ends when its input does.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::Read as _;
use std::panic::catch_unwind;

trait Visitor {
    fn visit(&self, depth: u32) -> u64;
}

struct Deeper(Box<dyn Visitor>);

struct Leaf;

impl Visitor for Deeper {
    fn visit(&self, depth: u32) -> u64 {
        black_box(self.0.visit(depth + 1)) + 1
    }
}

impl Visitor for Leaf {
    #[inline(never)]
    fn visit(&self, depth: u32) -> u64 {
        let mut numbers = [depth, 2, 1];
        numbers.sort_by_key(|number| black_box(wait_for_end()) + u64::from(*number));
        black_box(numbers[0].into())
    }
}

#[inline(never)]
fn wait_for_end() -> u64 {
    println!("ready");
    let mut byte = [0];
    while std::io::stdin().lock().read(&mut byte).is_ok_and(|count| count > 0) {}
    std::process::exit(0)
}

fn main() {
    let start = std::thread::spawn(|| std::thread::park());
    let visitor = (0..50).fold(Box::new(Leaf) as Box<dyn Visitor>, |inner, _| Box::new(Deeper(inner)));
    let mapped: BTreeMap<u32, u64> = (0..3)
        .map(|number| (number, catch_unwind(std::panic::AssertUnwindSafe(|| visitor.visit(number))).unwrap_or(0)))
        .collect();
    println!("{}", black_box(mapped.len()));
    drop(start);
}
