//! Labels from the environment of a process.

use std::fs::File;
use std::io::Read as _;

use borehole_model::{Label, LabelValue, LabelsId, TableFull, Tables};

/// The most bytes of an environment that are read.
const MOST_BYTES: u64 = 4 << 20;

/// The variables of the environment with which a process was started, as labels of its samples.
#[derive(Debug, Default)]
pub(crate) struct EnvironmentLabels {
    /// Names and values.
    variables: Vec<(String, Vec<u8>)>,
    interned: Option<LabelsId>,
}

impl EnvironmentLabels {
    /// The variables of these names that the process has.
    pub(crate) fn of(process: i32, names: &[String]) -> Self {
        let mut bytes = Vec::new();
        if !names.is_empty()
            && let Ok(file) = File::open(format!("/proc/{process}/environ"))
        {
            // An environment that cannot be read has no variables.
            drop(file.take(MOST_BYTES).read_to_end(&mut bytes));
        }
        Self { variables: variables(&bytes, names), interned: None }
    }

    /// The labels alone; `None` if there are none.
    pub(crate) fn alone(&mut self, tables: &mut Tables) -> Result<Option<LabelsId>, TableFull> {
        if self.interned.is_none() && !self.variables.is_empty() {
            let labels = self.labels(tables)?;
            self.interned = Some(tables.intern_labels(&labels)?);
        }
        Ok(self.interned)
    }

    /// The labels, to be put beside others.
    pub(crate) fn labels(&self, tables: &mut Tables) -> Result<Vec<Label>, TableFull> {
        let intern = |(name, value): &(String, Vec<u8>)| {
            let key = tables.intern_string(name.as_bytes())?;
            Ok(Label { key, value: LabelValue::Text(tables.intern_string(value)?) })
        };
        self.variables.iter().map(intern).collect()
    }

    /// Drops all ids: from now on the tables are other ones.
    pub(crate) fn forget(&mut self) {
        self.interned = None;
    }
}

/// The variables of these names in `bytes`, in the order of the names.
fn variables(bytes: &[u8], names: &[String]) -> Vec<(String, Vec<u8>)> {
    let value_of = |name: &String| {
        let mut entries = bytes.split(|&byte| byte == 0);
        let value = entries.find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
        Some((name.clone(), value.to_vec()))
    };
    names.iter().filter_map(value_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_by_their_whole_names() {
        let names = ["B", "MISSING", "A"].map(ToOwned::to_owned);
        let found = variables(b"AA=1\0A=2=3\0B=\0A=4\0", &names);
        assert_eq!(found, [("B".to_owned(), Vec::new()), ("A".to_owned(), b"2=3".to_vec())]);
    }
}
