//! The keys by which samples are chosen and grouped: columns, and labels of any name.

use std::fmt;

use crate::literal::text;

/// Other names of labels, and the label that each is stored as. Source: the semantic conventions of OpenTelemetry 1.38
/// (`service`, `deployment`, `k8s`, `container` and `cloud`).
const ALIASES: [(&str, &str); 10] = [
    ("service.version", "version"),
    ("service_version", "version"),
    ("deployment.environment", "environment"),
    ("deployment.environment.name", "environment"),
    ("k8s.pod.name", "pod"),
    ("k8s.namespace.name", "namespace"),
    ("k8s.node.name", "node"),
    ("k8s.container.name", "container"),
    ("container.name", "container"),
    ("cloud.region", "region"),
];

/// The columns of both `samples` and `measures` that are keys.
const COLUMNS: [&str; 6] = ["service", "host", "process", "thread", "thread_name", "source"];

/// The label under which a label of this name is stored in rows.
pub(crate) fn canonical(key: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == key).map_or(key, |&(_, label)| label)
}

/// A property of samples: `service`, `host`, `process`, `thread`, `thread_name`, `source`, or else a label. `label:KEY` is always
/// a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleKey {
    name: String,
    is_column: bool,
}

impl SampleKey {
    /// The key of a name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        match name.strip_prefix("label:") {
            Some(label) => Self::label(label),
            None if COLUMNS.contains(&name) => Self { name: name.to_owned(), is_column: true },
            None => Self::label(name),
        }
    }

    /// The key of a label.
    #[must_use]
    pub fn label(name: &str) -> Self {
        Self { name: canonical(name).to_owned(), is_column: false }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is the column of this name.
    pub(crate) fn is_column(&self, name: &str) -> bool {
        self.is_column && self.name == name
    }

    /// SQL for its value in a row of `samples` or `measures`, as text.
    pub(crate) fn sql(&self) -> String {
        match self.name.as_str() {
            "process" | "thread" if self.is_column => format!("CAST({} AS VARCHAR)", self.name),
            column if self.is_column => column.to_owned(),
            label => format!("label(labels, {})", text(label)),
        }
    }
}

/// A condition on a property of samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleSelector {
    /// The property.
    pub key: SampleKey,
    /// Its value.
    pub value: String,
    /// Whether samples with this value are left out, instead of all others.
    pub is_excluded: bool,
}

impl SampleSelector {
    /// Only samples with this value.
    #[must_use]
    pub const fn equal(key: SampleKey, value: String) -> Self {
        Self { key, value, is_excluded: false }
    }

    /// Parses `KEY=VALUE` or `KEY!=VALUE`; `None` if it is neither.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty() && *key != "!")?;
        let (key, is_excluded) = key.strip_suffix('!').map_or((key, false), |key| (key, true));
        Some(Self { key: SampleKey::new(key), value: value.to_owned(), is_excluded })
    }

    /// The SQL condition.
    pub(crate) fn condition(&self) -> String {
        let operator = if self.is_excluded { "IS DISTINCT FROM" } else { "=" };
        format!("{} {operator} {}", self.key.sql(), text(&self.value))
    }

    /// Whether rows of a file with these facts may match.
    pub(crate) fn may_match(&self, service: Option<&str>, labels: Option<&[String]>) -> bool {
        if self.is_excluded {
            return !self.key.is_column("service") || service != Some(&self.value);
        }
        if self.key.is_column {
            return !self.key.is_column("service") || service == Some(&self.value);
        }
        labels.is_none_or(|labels| labels.contains(&format!("{}={}", self.key.name, self.value)))
    }
}

impl fmt::Display for SampleSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = if self.is_excluded { "!=" } else { "=" };
        write!(f, "{}{operator}{}", self.key.name, self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_a_key_and_a_value() {
        let condition = |text: &str| SampleSelector::parse(text).map(|selector| selector.condition());
        assert_eq!(condition("host=a=b").as_deref(), Some("host = 'a=b'"));
        assert_eq!(
            condition("service.version!=it's").as_deref(),
            Some("label(labels, 'version') IS DISTINCT FROM 'it''s'")
        );
        assert_eq!(condition("label:host=a").as_deref(), Some("label(labels, 'host') = 'a'"));
        assert_eq!(condition("process=7").as_deref(), Some("CAST(process AS VARCHAR) = '7'"));
        assert_eq!([condition("=x"), condition("!=x"), condition("2d..1d")], [None, None, None]);
    }
}
