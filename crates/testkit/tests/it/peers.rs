//! The peers read files of the reference programs, and reject invalid ones.

use borehole_testkit::peers::{HEADLESS, peer, speedscope_import, speedscope_schema_errors};
use borehole_testkit::{Scratch, corpus};

#[test]
fn pprof_reads_a_profile() {
    let Some(pprof) = peer("pprof") else { return };
    let profile = corpus("rbt/expected/conv/unicode.rbt.pprof");
    let text = pprof.stdout(&["-raw", "-symbolize=none", &profile.to_string_lossy()]);
    assert!(text.contains("Samples:"), "{text}");
    let scratch = Scratch::new();
    let broken = scratch.write("broken.pb", b"not a profile");
    assert!(!pprof.run(&["-raw", &broken.to_string_lossy()]).status.success());
}

#[test]
fn speedscope_reads_a_profile() {
    let profile = corpus("rbt/expected/conv/unicode.rbt.speedscope.json");
    let Some(import) = speedscope_import(&profile) else { return };
    let import = import.unwrap();
    assert_eq!((import.profiles.len(), import.profiles[0].total_weight), (1, 4.0));
    assert_eq!(speedscope_schema_errors(&profile), Some(Vec::new()));
    let scratch = Scratch::new();
    let broken = scratch.write("broken.speedscope.json", b"{\"profiles\": 3}");
    assert!(speedscope_import(&broken).unwrap().is_err());
    assert!(!speedscope_schema_errors(&broken).unwrap().is_empty());
}

#[test]
fn callgrind_annotate_reads_a_profile() {
    let (Some(annotate), Some(_)) = (peer("callgrind_annotate"), peer("perl")) else { return };
    let profile = corpus("rbt/expected/conv/tiny_one.rbt.callgrind");
    let text = annotate.stdout(&[&profile.to_string_lossy()]);
    assert!(text.contains("PROGRAM TOTALS"), "{text}");
}

#[test]
fn chromium_draws_a_picture() {
    let Some(chromium) = peer("chromium") else { return };
    let scratch = Scratch::new();
    let svg = b"<svg xmlns=\"http://www.w3.org/2000/svg\"><text>main</text></svg>";
    let page = scratch.write("page.svg", svg);
    let show = [
        format!("--user-data-dir={}", scratch.path("profile").display()),
        "--dump-dom".to_owned(),
        format!("file://{}", page.display()),
    ];
    let text = chromium.stdout(&[&HEADLESS[..], &show.each_ref().map(String::as_str)].concat());
    assert!(text.contains("<text>main</text>"), "{text}");
}
