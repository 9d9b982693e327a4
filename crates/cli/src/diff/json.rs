//! A diff as one JSON object: the views as they serialize, with what was asked for.

use borehole_analysis::diff::{DiffView, Per};
use borehole_analysis::tokio::TokioChange;
use serde_json::{Value, json};

use super::{CrossedLimit, ShownDiff};

/// Raised when a key changes its meaning or goes away.
const SCHEMA_VERSION: u32 = 1;

/// The object; `crossed` is the limit that failed.
pub(crate) fn object(
    view: &DiffView,
    tokio: &[TokioChange],
    args: &ShownDiff<'_>,
    crossed: Option<&CrossedLimit>,
) -> serde_json::Result<Value> {
    let shown = args.limit.count();
    let mut object = serde_json::to_value(view.first_rows(shown))?;
    object["schema_version"] = SCHEMA_VERSION.into();
    object["per"] = per(args.per);
    for (side, names) in ["before", "after"].into_iter().zip(&args.names) {
        object[side]["files"] = names.iter().map(|name| Value::from(name.to_string_lossy())).collect();
    }
    if !tokio.is_empty() {
        object["tokio"] = json!({ "distinct": tokio.len(), "rows": first(tokio, shown) });
    }
    if let Some(CrossedLimit { what, growth, allowed, .. }) = crossed {
        // Growth from nothing is no number.
        let growth = growth.is_finite().then_some(growth);
        object["failed"] = json!({ "what": what, "growth": growth, "allowed": allowed });
    }
    Ok(object)
}

fn first<T>(rows: &[T], shown: usize) -> &[T] {
    &rows[..shown.min(rows.len())]
}

fn per(per: &Per) -> Value {
    match per {
        Per::Samples => "samples".into(),
        Per::Time => "time".into(),
        Per::Input => "input".into(),
        Per::Label(key) => json!({ "label": String::from_utf8_lossy(key) }),
    }
}

#[cfg(test)]
mod tests {
    use borehole::model::ValueType;
    use borehole_analysis::ProfileSummary;
    use borehole_analysis::diff::{
        Amount, DiffFrame, DiffMeasure, DiffPath, DiffRow, DiffSide, NoiseBasis, ValueChange,
    };

    use super::*;

    fn change(before: u64, after: u64) -> ValueChange {
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let amount = |samples| Amount { samples, value: samples as f64 };
        let (before, after) = (amount(before), amount(after));
        ValueChange { before, after, margin: 0.5, chance: 0.25, is_marked: true }
    }

    #[test]
    fn rows_and_paths_have_the_keys_of_their_frames_and_changes() {
        let frame = DiffFrame { function: b"caf\xff".to_vec(), file: Some(b"a.php".to_vec()), line: None };
        let (self_change, total_change, frame) = (change(0, 0), change(0, 2), std::sync::Arc::new(frame));
        let total_object = json!({
            "before": {"samples": 0, "value": 0.0},
            "after": {"samples": 2, "value": 2.0},
            "change": 2.0, "margin": 0.5, "chance": 0.25, "significant": true,
        });
        let row = json!(DiffRow { frame: frame.clone(), self_change, total_change });
        let expected = json!({
            "function": "caf\u{fffd}", "file": "a.php", "self": self_change, "total": total_object, "on": "appeared",
        });
        assert_eq!(row, expected);
        let path = json!(DiffPath { frames: vec![frame], self_change, total_change: change(1, 0) });
        assert_eq!(path["frames_root_first"], json!([{"function": "caf\u{fffd}", "file": "a.php"}]));
        assert_eq!(path["on"], "vanished");
        assert_eq!([json!(DiffMeasure::Seconds), json!(NoiseBasis::Independent)], ["seconds", "samples"]);
    }

    #[test]
    fn a_side_has_no_keys_of_what_it_does_not_know() {
        let unknown = json!(DiffSide { stretches: 3, is_ordered: true, ..DiffSide::default() });
        for key in ["value_type", "unit", "value", "wall_ns", "span_ns", "other_value_types"] {
            assert_eq!(unknown.get(key), None, "{key}");
        }
        assert_eq!((&unknown["stretches"], &unknown["ordered"]), (&json!(3), &json!(true)));
        let known = json!(DiffSide {
            summary: ProfileSummary {
                matched: 4,
                time_ns: Some(u128::MAX),
                span_ns: Some(6),
                ..ProfileSummary::default()
            },
            value_type: Some(ValueType::new("cpu", "nanoseconds")),
            value: Some(7),
            ..DiffSide::default()
        });
        let number = |key: &str| known[key].as_u64();
        assert_eq!(["matched", "span_ns", "value"].map(number), [Some(4), Some(6), Some(7)]);
        assert_eq!(number("wall_ns"), Some(u64::MAX));
        assert_eq!((&known["value_type"], &known["unit"]), (&json!("cpu"), &json!("nanoseconds")));
    }
}
