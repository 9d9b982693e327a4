//! Golden files: expected outputs.

use std::path::Path;
use std::{env, fs};

/// Whether to rewrite golden files and recordings: `UPDATE_GOLDEN=1` in the environment asks for it.
#[must_use]
pub fn updates_golden() -> bool {
    env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1")
}

/// Asserts that `found` equals the contents of the file at `path`.
///
/// With [`updates_golden`], it writes the file instead.
///
/// # Panics
/// If it differs, with the first line that does, or if the file does not exist.
#[track_caller]
pub fn assert_golden(path: impl AsRef<Path>, found: &[u8]) {
    let path = path.as_ref();
    if updates_golden() {
        write(path, found);
        return;
    }
    if let Err(message) = compare(path, found) {
        panic!("{message}\nif the new output is correct, run the test with UPDATE_GOLDEN=1");
    }
}

fn write(path: &Path, found: &[u8]) {
    let folder = path.parent().expect("a golden file is in a folder");
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(path, found));
    written.unwrap_or_else(|error| panic!("golden file {}: {error}", path.display()));
}

fn compare(path: &Path, found: &[u8]) -> Result<(), String> {
    let wanted = fs::read(path).map_err(|error| format!("golden file {}: {error}", path.display()))?;
    if wanted == found { Ok(()) } else { Err(first_difference(path, &wanted, found)) }
}

fn first_difference(path: &Path, wanted: &[u8], found: &[u8]) -> String {
    let mut wanted = wanted.split_inclusive(|&byte| byte == b'\n');
    let mut found = found.split_inclusive(|&byte| byte == b'\n');
    let mut line = 1;
    loop {
        let pair = (wanted.next(), found.next());
        if pair.0 != pair.1 {
            let show = |text: Option<&[u8]>| {
                text.map_or("the end of the file".into(), |text| {
                    format!("{:?}", text.escape_ascii().to_string())
                })
            };
            return format!(
                "{}, line {line}: expected {}, found {}",
                path.display(),
                show(pair.0),
                show(pair.1)
            );
        }
        line += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scratch;

    #[test]
    fn missing_and_different_golden_files_fail_with_the_first_difference() {
        let scratch = Scratch::new();
        let path = scratch.path("a/b.txt");
        assert!(compare(&path, b"x").is_err());
        write(&path, b"one\ntwo\nthree\n");
        assert_eq!(compare(&path, b"one\ntwo\nthree\n"), Ok(()));
        let message = compare(&path, b"one\n\xff\nthree\n").unwrap_err();
        assert!(message.ends_with(r#"line 2: expected "two\\n", found "\\xff\\n""#), "{message}");
        let message = compare(&path, b"one\ntwo\n").unwrap_err();
        assert!(message.ends_with(r#"line 3: expected "three\\n", found the end of the file"#), "{message}");
    }
}
