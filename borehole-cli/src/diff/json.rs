//! A diff as one JSON object, on one line.

use borehole_analysis::diff::{
    Basis, Change, DiffFrame, DiffPath, DiffRow, DiffSide, DiffView, Measure, Per, Presence,
};
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
        "unit": match view.measure {
            Measure::Share => "share",
            Measure::Samples => "samples",
            Measure::Seconds => "seconds",
        },
        "noise": {
            "confidence": view.confidence,
            "between": match view.basis {
                Basis::Stretches => "stretches",
                Basis::Inputs => "inputs",
                Basis::Independent => "samples",
            },
            "test": "welch",
            "correction": "benjamini-hochberg",
        },
        "whole": change(&view.whole),
        "functions": {
            "distinct": view.functions.len(),
            "moved": view.moved,
            "rows": view.functions.iter().take(shown).map(function).collect::<Vec<_>>(),
        },
        "paths": {
            "distinct": view.distinct_paths,
            "rows": view.paths.iter().take(shown).map(path).collect::<Vec<_>>(),
        },
    });
    format!("{object}\n")
}

fn per(per: &Per) -> Value {
    match per {
        Per::Samples => "samples".into(),
        Per::Time => "time".into(),
        Per::Input => "input".into(),
        Per::Label(key) => json!({ "label": lossy(key) }),
    }
}

fn side(side: &DiffSide, inputs: &Inputs) -> Value {
    let mut object = json!({
        "files": inputs.names().map(|name| name.to_string_lossy()).collect::<Vec<_>>(),
        "samples": side.summary.samples,
        "matched": side.summary.matched,
        "empty": side.summary.empty,
        "stacks": side.summary.stacks,
        "divisor": side.divisor,
        "stretches": side.blocks,
        "ordered": side.is_ordered,
        "lost_bytes": side.summary.lost_bytes,
        "warnings": side.summary.warnings,
    });
    if let (Some(value_type), Some(value)) = (&side.value_type, side.value) {
        object["value_type"] = value_type.kind.as_str().into();
        object["unit"] = value_type.unit.as_str().into();
        object["value"] = value.into();
    }
    for (key, value) in [
        ("wall_ns", side.summary.time_ns.map(|time_ns| u64::try_from(time_ns).unwrap_or(u64::MAX))),
        ("span_ns", side.summary.span_ns),
    ] {
        if let Some(value) = value {
            object[key] = value.into();
        }
    }
    object
}

fn change(change: &Change) -> Value {
    json!({
        "before": { "samples": change.before.samples, "value": change.before.value },
        "after": { "samples": change.after.samples, "value": change.after.value },
        "change": change.difference(),
        "margin": change.margin,
        "chance": change.chance,
        "beyond_noise": change.is_marked,
    })
}

const fn presence(total: &Change) -> &'static str {
    match Presence::of(total) {
        Presence::Both => "both",
        Presence::Appeared => "appeared",
        Presence::Vanished => "vanished",
    }
}

fn frame(frame: &DiffFrame) -> Value {
    let mut object = json!({ "function": lossy(&frame.function) });
    if let Some(file) = &frame.file {
        object["file"] = lossy(file).into();
    }
    if let Some(line) = frame.line {
        object["line"] = line.into();
    }
    object
}

fn function(row: &DiffRow) -> Value {
    let mut object = frame(&row.frame);
    object["self"] = change(&row.own);
    object["total"] = change(&row.total);
    object["on"] = presence(&row.total).into();
    object
}

fn path(path: &DiffPath) -> Value {
    json!({
        "frames_root_first": path.frames.iter().map(|of| frame(of)).collect::<Vec<_>>(),
        "self": change(&path.own),
        "total": change(&path.total),
        "on": presence(&path.total),
    })
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
