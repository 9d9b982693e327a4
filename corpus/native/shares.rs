//! A program that takes CPU time for ever: three quarters of it in `three`, a quarter in `one`, ten calls deep. Which of both is
//! called is drawn, so that no sampler runs in step with it.

use std::hint::black_box;
use std::io::Write;

#[inline(never)]
fn spin(rounds: u32, mut x: u32) -> u32 {
    for _ in 0..rounds {
        x = black_box(x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    }
    x
}

#[inline(never)]
fn three(x: u32) -> u32 {
    black_box(spin(30_000, x)) ^ 1
}

#[inline(never)]
fn one(x: u32) -> u32 {
    black_box(spin(10_000, x)) ^ 2
}

#[inline(never)]
fn deep(depth: u32, x: u32) -> u32 {
    match depth {
        // Both are called equally often.
        0 if x >> 31 == 0 => black_box(three(x)),
        0 => black_box(one(x)),
        _ => black_box(deep(depth - 1, x)).rotate_left(1),
    }
}

fn main() {
    println!("ready");
    std::io::stdout().flush().unwrap();
    let begun = std::time::Instant::now();
    let mut drawn = 1_u32;
    while begun.elapsed().as_secs() < 600 {
        drawn ^= drawn << 13;
        drawn ^= drawn >> 17;
        drawn ^= drawn << 5;
        black_box(deep(10, drawn));
    }
}
