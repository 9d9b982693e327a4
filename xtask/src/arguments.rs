//! The words after the name of a chore.

use anyhow::{Context, Result, bail};

/// The words and options that a chore was given.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Given {
    /// Options without a value, as they were spelled.
    flags: Vec<String>,
    /// Options with theirs.
    values: Vec<(String, String)>,
    /// Everything that is no option.
    pub(crate) words: Vec<String>,
}

impl Given {
    /// Reads `arguments`, among which `flags` stand alone and `valued` have a value, as `--name VALUE` or `--name=VALUE`.
    ///
    /// # Errors
    /// When an option is another, has a value that it does not take, or lacks one.
    pub(crate) fn read(arguments: &[String], flags: &[&str], valued: &[&str]) -> Result<Self> {
        let mut given = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (argument.as_str(), None),
            };
            if valued.contains(&name) {
                let value = value.or_else(|| arguments.next().cloned());
                let value = value.with_context(|| format!("missing value of {name}"))?;
                given.values.push((name.to_owned(), value));
            } else if flags.contains(&argument.as_str()) {
                given.flags.push(argument.clone());
            } else if argument.starts_with('-') {
                bail!("unknown option {argument}");
            } else {
                given.words.push(argument.clone());
            }
        }
        Ok(given)
    }

    /// Whether the option `name` was given.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.flags.iter().any(|flag| flag == name)
    }

    /// The values of the option `name`, in order.
    pub(crate) fn values(&self, name: &str) -> Vec<String> {
        let given = self.values.iter().filter(|(option, _)| option == name);
        given.map(|(_, value)| value.clone()).collect()
    }

    /// That there are options only.
    ///
    /// # Errors
    /// When there is a word.
    pub(crate) fn without_words(self) -> Result<Self> {
        match self.words.first() {
            Some(word) => bail!("unexpected argument {word}"),
            None => Ok(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Given> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Given::read(&words, &["--list"], &["--only"])
    }

    #[test]
    fn options_have_values_in_both_spellings() {
        let given = read("--only fmt php --list --only=tidy").unwrap();
        assert_eq!(given.values("--only"), ["fmt", "tidy"]);
        assert!(given.has("--list"));
        assert_eq!(given.words, ["php"]);
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let message = |line: &str| read(line).and_then(Given::without_words).unwrap_err().to_string();
        assert_eq!(message("--lost"), "unknown option --lost");
        assert_eq!(message("--list=1"), "unknown option --list=1");
        assert_eq!(message("--only"), "missing value of --only");
        assert_eq!(message("php"), "unexpected argument php");
    }
}
