//! Facts of an input about where it comes from: version, environment, pod, and any other.

use borehole_model::NativeModule;
use borehole_text::lossless::escape;
use serde_json::{Map, Value};

use super::labels::{add_value, replace_value};
use crate::keys::canonical;
use crate::labels::without_nul;

/// The maximum number of facts that the labels of rows include.
const MOST_OF_ROWS: usize = 32;
/// The maximum length of the value of a label of rows, in bytes. Longer facts are in `sources` only.
const LONGEST_OF_ROWS: usize = 256;
/// The maximum number of bytes of the facts that `sources` keeps about an input.
const MOST_BYTES: usize = 1 << 20;

/// Facts that differ between the files of one program, or have a column. They are in `sources` only, because labels that
/// differ from file to file would make lists of labels useless.
const OF_SOURCES: [&str; 10] = [
    NativeModule::KEY,
    "boot_id",
    "duration_ns",
    "pid",
    "process.pid",
    "dump.reason",
    "segment.complete",
    "tokio.poll_coverage",
    "cmdline",
    "command",
];

/// The beginnings of more such facts: the workers of runtimes, and the processor of the machine.
const OF_SOURCES_PREFIXES: [&str; 2] = ["runtime.", "cpu.profile."];

/// The facts about where the rows of an input come from.
#[derive(Debug, Default)]
pub(super) struct Origin {
    /// The labels that the user gives, which the input cannot replace.
    given: Vec<(String, String)>,
    /// The labels of the rows that follow.
    of_rows: Map<String, Value>,
    /// All facts of the input.
    all: Map<String, Value>,
    bytes: usize,
    /// The number of facts left out of `all`.
    left_out: u64,
    /// Whether `of_rows` has changed since it was last asked for.
    is_changed: bool,
}

impl Origin {
    pub(super) fn new(given: &[(String, String)]) -> Self {
        let given: Vec<_> = given.iter().map(|(key, value)| (without_nul(key), without_nul(value))).collect();
        let mut origin = Self { given: given.clone(), ..Self::default() };
        for (key, value) in &given {
            replace_value(&mut origin.all, key.clone(), value.as_str().into());
        }
        origin.begin();
        origin
    }

    /// Begins another program: only what the user gives applies to it.
    pub(super) fn begin(&mut self) {
        self.of_rows.clear();
        for (key, value) in &self.given {
            replace_value(&mut self.of_rows, canonical(key).to_owned(), value.as_str().into());
        }
        self.is_changed = true;
    }

    /// Takes a fact. `is_column`: rows have it in a column.
    pub(super) fn take(&mut self, key: &str, value: &[u8], is_column: bool) {
        let (key, value) = (escape(key.as_bytes()), escape(value));
        if self.bytes + key.len() + value.len() > MOST_BYTES {
            self.left_out += 1;
        } else if add_value(&mut self.all, key.clone().into_owned(), value.as_ref().into()) {
            self.bytes += key.len() + value.len();
        }
        let is_given = self.given.iter().any(|(given, _)| canonical(given) == canonical(&key));
        let is_of_rows = !is_column
            && !is_given
            && value.len() <= LONGEST_OF_ROWS
            && !OF_SOURCES.contains(&&*key)
            && !OF_SOURCES_PREFIXES.iter().any(|prefix| key.starts_with(prefix));
        let key = canonical(&key);
        if is_of_rows && (self.of_rows.len() < MOST_OF_ROWS || self.of_rows.contains_key(key)) {
            self.is_changed |= replace_value(&mut self.of_rows, key.to_owned(), value.as_ref().into());
        }
    }

    /// The labels of the rows that follow, if they have changed.
    pub(super) fn changed(&mut self) -> Option<&Map<String, Value>> {
        std::mem::take(&mut self.is_changed).then_some(&self.of_rows)
    }

    /// Everything known about the input as a JSON object; `None` if nothing is.
    pub(super) fn text(&self) -> Option<String> {
        (!self.all.is_empty()).then(|| Value::Object(self.all.clone()).to_string())
    }

    /// A warning about facts that were left out.
    pub(super) fn warning(&self) -> Option<String> {
        let left_out = self.left_out;
        (left_out > 0)
            .then(|| format!("{left_out} facts about the file left out: more than {MOST_BYTES} bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_rows(origin: &mut Origin) -> String {
        origin.changed().map_or_else(String::new, |labels| Value::Object(labels.clone()).to_string())
    }

    #[test]
    fn what_the_user_gives_stays_and_facts_of_one_file_are_in_sources_only() {
        let mut origin = Origin::new(&[("service.version".to_owned(), "2".to_owned())]);
        for (key, value) in [("service.version", "1"), ("k8s.pod.name", "a"), ("pid", "7"), ("note", "x")] {
            origin.take(key, value.as_bytes(), false);
        }
        origin.take("note", &[b'y'; LONGEST_OF_ROWS + 1], false);
        assert_eq!(of_rows(&mut origin), r#"{"note":"x","pod":"a","version":"2"}"#);
        assert_eq!(of_rows(&mut origin), "", "nothing has changed since");
        let all = origin.text().unwrap();
        assert!(all.contains(r#""pid":"7""#) && all.contains(r#""service.version":["2","1"]"#), "{all}");
        origin.begin();
        assert_eq!(of_rows(&mut origin), r#"{"version":"2"}"#);
    }

    #[test]
    fn facts_are_bounded_and_losses_are_said() {
        let mut origin = Origin::default();
        for number in 0..20 {
            origin.take(&format!("key{number}"), &vec![b'x'; MOST_BYTES / 16], false);
        }
        let warning = origin.warning().unwrap();
        assert!(warning.starts_with("5 facts") || warning.starts_with("4 facts"), "{warning}");
        (0..100).for_each(|number| origin.take(&format!("short{number}"), b"x", false));
        assert_eq!(origin.of_rows.len(), MOST_OF_ROWS);
    }
}
