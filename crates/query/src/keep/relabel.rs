//! New labels, services and hosts for rows.

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarUDF, Volatility, create_udf};
use serde_json::{Map, Value};

use crate::journal::DataFile;
use crate::keys::canonical;
use crate::labels::{LabelColumn, LabelRows, data_type, without_nul};
use crate::literal::text;
use crate::tables::LakeTable;

/// The name of the function that changes labels.
const FUNCTION: &str = "relabelled";

/// New labels for rows, and labels to remove. The keys `service` and `host` stand for the columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Relabeling {
    service: Option<String>,
    host: Option<String>,
    /// The new values by key; `None` removes the label.
    labels: Vec<(String, Option<String>)>,
}

impl Relabeling {
    /// Sets a label, or the service or the host.
    #[must_use]
    pub fn set(mut self, key: &str, value: &str) -> Self {
        match key {
            "service" => self.service = Some(without_nul(value)),
            "host" => self.host = Some(without_nul(value)),
            label => self.labels.push((label_of(label), Some(without_nul(value)))),
        }
        self
    }

    /// Removes a label.
    #[must_use]
    pub fn unset(mut self, key: &str) -> Self {
        self.labels.push((label_of(key), None));
        self
    }

    /// The facts about a file of which all rows are relabelled.
    pub(super) fn file(&self, file: &DataFile) -> DataFile {
        let mut file = file.clone();
        if file.table() != Some(LakeTable::Sources) {
            file.service = self.service.clone().or(file.service);
        }
        if let Some(host) = &self.host {
            file.hosts = Some(vec![host.clone()]);
        }
        if let Some(labels) = &mut file.labels {
            for (key, value) in &self.labels {
                labels.retain(|label| label.split_once('=').is_none_or(|(known, _)| known != key));
                labels.extend(value.iter().map(|value| format!("{key}={value}")));
            }
            labels.sort_unstable();
        }
        file
    }

    /// SQL for the new value of a column.
    pub(super) fn column(&self, column: &str) -> String {
        match (column, &self.service, &self.host) {
            ("service", Some(service), _) => text(service),
            ("host", _, Some(host)) => text(host),
            ("labels", ..) if !self.labels.is_empty() => format!("{FUNCTION}(labels)"),
            _ => column.to_owned(),
        }
    }

    /// The SQL function that changes labels.
    pub(super) fn function(&self) -> ScalarUDF {
        let labels = self.labels.clone();
        let change = move |arguments: &[ColumnarValue]| -> Result<ColumnarValue> {
            let arrays = ColumnarValue::values_to_arrays(arguments)?;
            Ok(ColumnarValue::Array(relabelled(&LabelRows::new(&arrays[0])?, &labels)))
        };
        create_udf(FUNCTION, vec![data_type()], data_type(), Volatility::Immutable, Arc::new(change))
    }
}

/// The label of a key, which may be written `label:KEY`.
fn label_of(key: &str) -> String {
    without_nul(canonical(key.strip_prefix("label:").unwrap_or(key)))
}

/// Labels with changes.
fn relabelled(rows: &LabelRows, changes: &[(String, Option<String>)]) -> ArrayRef {
    let mut changed = LabelColumn::default();
    for row in 0..rows.len() {
        let labels = rows.row(row).into_iter().flatten();
        let is_kept = |key: &str| changes.iter().all(|(changed, _)| canonical(key) != changed);
        let kept = labels.filter(|(key, _)| is_kept(key)).map(|(key, value)| (key.to_owned(), value.into()));
        let mut labels: Map<String, Value> = kept.collect();
        for (key, value) in changes {
            labels.remove(key);
            labels.extend(value.iter().map(|value| (key.clone(), Value::from(value.as_str()))));
        }
        changed.push(Some(&labels));
    }
    changed.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::of_objects;

    #[test]
    fn labels_are_replaced_under_all_their_names() {
        let changes = Relabeling::default().set("service.version", "2").unset("label:pod").labels;
        let both = r#"{"a":"x","k8s.pod.name":"p","service.version":"1"}"#;
        let changed = |changes| {
            let rows =
                relabelled(&LabelRows::new(&of_objects([Some(both), None].into_iter())).unwrap(), changes);
            let rows = LabelRows::new(&rows).unwrap();
            [0, 1].map(|row| {
                rows.row(row).map(|labels| labels.map(|(key, value)| format!("{key}={value}")).collect())
            })
        };
        let some = |labels: &[&str]| Some(labels.iter().map(|&label| label.to_owned()).collect::<Vec<_>>());
        assert_eq!(changed(&changes), [some(&["a=x", "version=2"]), some(&["version=2"])]);
        let gone = Relabeling::default().unset("a").unset("pod").unset("version").labels;
        assert_eq!(changed(&gone), [None, None]);
    }

    #[test]
    fn facts_of_files_follow_their_labels() {
        let file = DataFile {
            table: "samples".to_owned(),
            service: Some("a".to_owned()),
            labels: Some(vec!["uri=/".to_owned(), "version=1".to_owned()]),
            ..DataFile::default()
        };
        let relabelling = Relabeling::default().set("version", "0").set("service", "b").set("host", "h");
        let new = relabelling.file(&file);
        assert_eq!((new.service.as_deref(), new.hosts), (Some("b"), Some(vec!["h".to_owned()])));
        assert_eq!(new.labels.unwrap(), ["uri=/", "version=0"]);
    }
}
