//! A diff as one JSON object, on one line: the views as they serialize, with what was asked for.

use borehole_analysis::diff::{DiffSide, DiffView, Per};
use serde_json::{Value, json};

use super::args::DiffArgs;
use crate::inputs::Inputs;

/// Raised when a key changes its meaning or goes away.
const SCHEMA_VERSION: u32 = 1;

pub(crate) fn text(view: &DiffView, args: &DiffArgs, sides: &[Inputs; 2]) -> String {
    let shown = args.limit.count();
    let object = json!({
        "schema_version": SCHEMA_VERSION,
        "before": side(&view.before, &sides[0]),
        "after": side(&view.after, &sides[1]),
        "per": per(&args.per),
        "unit": view.measure,
        "noise": {
            "confidence": view.confidence,
            "between": view.basis,
            "test": "welch",
            "correction": "benjamini-hochberg",
        },
        "whole": view.whole,
        "functions": {
            "distinct": view.functions.len(),
            "moved": view.moved,
            "rows": first(&view.functions, shown),
        },
        "paths": {
            "distinct": view.distinct_paths,
            "rows": first(&view.paths, shown),
        },
    });
    format!("{object}\n")
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

fn side(side: &DiffSide, inputs: &Inputs) -> Value {
    let mut object = json!(side);
    object["files"] = inputs.names().map(|name| Value::from(name.to_string_lossy())).collect();
    object
}
