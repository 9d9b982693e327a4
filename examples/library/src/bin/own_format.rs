//! A format of another crate, detected by its content, and written.

#![forbid(unsafe_code)]

use borehole::{Input, InputOptions, Source, Target, convert};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let toy: &[u8] = b"toy 1\nmain query\nmain\n";
    let options = InputOptions { own_formats: &[borehole_toy_format::FORMAT], ..InputOptions::default() };
    let input = Input::open(Source::reader("stacks", toy), &options)?;
    let (target, mut written) = (Target::new(input.format()), Vec::new());
    let outcome = convert([input], &target, &mut written)?;
    assert_eq!(written, toy);
    Ok(println!("{}: {} samples", target.format.name(), outcome.recovery.samples))
}
