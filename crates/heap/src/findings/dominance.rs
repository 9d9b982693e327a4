//! Findings about the class or the type that takes most of the memory.

use crate::graph::MemoryTotal;

use super::amounts::{count, each, is_share, share, size};
use super::census::Thing;
use super::finding::{Confidence, FindingKind, FindingSeverity, HeapFinding};
use super::limits::{MEBIBYTE, NOTEWORTHY};
use super::severity;
use super::survey::HeapSurvey;

/// The percentage of the memory of objects: reli's threshold.
const CLASS_SHARE: u64 = 50;
/// Severities by the percentage of the heap: reli's thresholds.
const TYPE_LEVELS: [(u64, FindingSeverity); 2] = [(80, FindingSeverity::High), (50, FindingSeverity::Medium)];

/// The minimum number of instances: fewer are no accumulation, whatever their size.
const INSTANCES: u64 = 100;

/// The types of values created by programs. Other types, such as the stack, dominate any small heap.
const OF_PROGRAMS: [&[u8]; 5] = [
    b"ZendStringMemoryLocation",
    b"ZendArrayTableMemoryLocation",
    b"ZendArrayTableOverheadMemoryLocation",
    b"ZendArrayMemoryLocation",
    b"ZendObjectMemoryLocation",
];

pub(super) fn find(survey: &HeapSurvey<'_>) -> Vec<HeapFinding> {
    dominant_class(survey).into_iter().chain(dominant_type(survey)).collect()
}

fn dominant_class(survey: &HeapSurvey<'_>) -> Option<HeapFinding> {
    let classes = &survey.totals.classes;
    let all = classes.iter().fold(0_u64, |sum, class| sum.saturating_add(class.memory_usage));
    let largest: &MemoryTotal = classes.iter().max_by_key(|class| class.memory_usage)?;
    let bytes = largest.memory_usage;
    if !is_share(bytes, CLASS_SHARE, all) || bytes < NOTEWORTHY || largest.count < INSTANCES {
        return None;
    }
    let is_class =
        |thing| matches!(thing, Thing::Object(class) if survey.graph().string(class) == largest.name);
    let place = survey.heaviest_owner(is_class);
    let name = String::from_utf8_lossy(&largest.name).into_owned();
    let average = each(bytes, largest.count);
    let text = format!(
        "{name}: {} instances of {average} B take {:.1}% of the memory of objects ({})",
        count(largest.count),
        share(bytes, all),
        size(bytes)
    );
    let finding = HeapFinding::new(FindingKind::DominantClass, FindingSeverity::High, text)
        .fact("class_name", name.as_str())
        .fact("count", largest.count)
        .fact("memory_bytes", bytes)
        .fact("percentage_of_object_memory", share(bytes, all))
        .fact("avg_size", average)
        .likely(Confidence::Medium, "Instances accumulate: something collects them without a bound.")
        .check("Check whether their number grows over time (borehole heap compare).")
        .check(format!(
            "Find what holds one: borehole heap ask FILE path-to-root NODE, or search for {name} in the explorer."
        ))
        .impact(bytes)
        .at(place);
    Some(finding)
}

fn dominant_type(survey: &HeapSurvey<'_>) -> Option<HeapFinding> {
    let types = &survey.totals.location_types;
    let of_programs = types.iter().filter(|total| OF_PROGRAMS.contains(&total.name.as_slice()));
    let largest = of_programs.max_by_key(|total| total.memory_usage)?;
    let bytes = largest.memory_usage;
    let severity = severity::reached(bytes, survey.used, &TYPE_LEVELS).filter(|_| bytes >= MEBIBYTE)?;
    let full = String::from_utf8_lossy(&largest.name).into_owned();
    let name = full.strip_suffix("MemoryLocation").unwrap_or(&full);
    let text = format!(
        "{name} takes {:.1}% of the heap: {} in {} blocks",
        share(bytes, survey.used),
        size(bytes),
        count(largest.count)
    );
    let finding = HeapFinding::new(FindingKind::DominantType, severity, text)
        .fact("type", full.as_str())
        .fact("count", largest.count)
        .fact("memory_bytes", bytes)
        .fact("percentage_of_heap", share(bytes, survey.used))
        .likely(Confidence::Medium, "Most data of the program is of one type.")
        .check("Look at the largest arrays and strings below, and at what holds them.")
        .impact(bytes)
        .at(survey.heaviest_owner(|thing| is_of_type(thing, &largest.name)));
    Some(finding)
}

/// Whether the memory of a value, or that of its table, is of this type.
fn is_of_type(thing: Thing, type_name: &[u8]) -> bool {
    match thing {
        Thing::Object(_) => type_name == OF_PROGRAMS[4],
        Thing::String(_) => type_name == OF_PROGRAMS[0],
        Thing::Array => OF_PROGRAMS[1..4].contains(&type_name),
        Thing::Other => false,
    }
}
