//! Converts a profile to pprof with progress; Enter cancels, and then no output is left.

#![forbid(unsafe_code)]

use std::{env, io, thread};

use borehole::{
    CancelToken, Compression, Error, Existing, Format, Input, InputOptions, Output, Source, Target, convert,
};

fn main() -> Result<(), Error> {
    let trace = env::args().nth(1).unwrap_or("../../corpus/rbt/realistic_54k_ts.rbt".into());
    let token = CancelToken::default();
    let pressed = token.clone();
    thread::spawn(move || {
        io::stdin().read_line(&mut String::new()).is_ok_and(|bytes| bytes > 0).then(|| pressed.cancel())
    });
    let input = Input::open(Source::path(trace)?, &InputOptions::default())?;
    let input = input.cancelled_by(&token).on_progress(|done| {
        eprintln!("{:3.0} %", done.fraction().unwrap_or(0.0) * 100.0);
    });
    let mut output = Output::create("converted.pb.gz", Existing::Replace, Compression::None)?;
    let outcome = convert([input], &Target::new(Format::Pprof), &mut output)?;
    output.complete()?;
    eprintln!("{} samples; {}", outcome.recovery.samples, outcome.losses);
    Ok(())
}
