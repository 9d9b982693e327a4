//! UTC times in names and files.

use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) use borehole_text::iso_utc as iso;

/// Seconds since 1970.
pub(crate) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Like [`iso`] without colons, for file names.
pub(crate) fn iso_name(seconds: u64) -> String {
    iso(seconds).replace(':', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_have_no_colons() {
        assert_eq!(iso_name(1_775_752_212), "2026-04-09T163012Z");
    }
}
