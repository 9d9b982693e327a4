//! Findings about the class or the type that takes most of the memory.

use crate::graph::{Graph, Total};

use super::amounts::{count, each, is_share, share, size};
use super::census::Thing;
use super::context::Context;
use super::finding::{Confidence, Finding, Kind, Severity};
use super::{MEBIBYTE, NOTEWORTHY};

/// The percentage of the memory of objects: reli's threshold.
const CLASS_SHARE: u64 = 50;
/// Percentages of the heap: reli's thresholds.
const TYPE_SHARE_HIGH: u64 = 80;
const TYPE_SHARE: u64 = 50;

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

pub(super) fn find<G: Graph + ?Sized>(context: &Context<'_, '_, G>) -> Vec<Finding> {
    dominant_class(context).into_iter().chain(dominant_type(context)).collect()
}

fn dominant_class<G: Graph + ?Sized>(context: &Context<'_, '_, G>) -> Option<Finding> {
    let classes = &context.totals.classes;
    let all = classes.iter().fold(0_u64, |sum, class| sum.saturating_add(class.memory_usage));
    let largest: &Total = classes.iter().max_by_key(|class| class.memory_usage)?;
    let bytes = largest.memory_usage;
    if !is_share(bytes, CLASS_SHARE, all) || bytes < NOTEWORTHY || largest.count < INSTANCES {
        return None;
    }
    let is_class =
        |thing| matches!(thing, Thing::Object(class) if context.graph().string(class) == largest.name);
    let place = context.heaviest_owner(is_class);
    let name = String::from_utf8_lossy(&largest.name).into_owned();
    let average = each(bytes, largest.count);
    let text = format!(
        "{name}: {} instances of {average} B are {:.1}% of the objects' memory ({})",
        count(largest.count),
        share(bytes, all),
        size(bytes)
    );
    let finding = Finding::new(Kind::DominantClass, context.weighed(Severity::High), text)
        .fact("class_name", name.as_str())
        .fact("count", largest.count)
        .fact("memory_bytes", bytes)
        .fact("percentage_of_object_memory", share(bytes, all))
        .fact("avg_size", average)
        .likely(Confidence::Medium, "they pile up: something collects them without a bound")
        .check("See whether there are more of them after more work (borehole heap compare)")
        .check(format!(
            "Look for what holds one: borehole heap ask FILE path-to-root NODE, or search {name} in the explorer"
        ))
        .impact(bytes)
        .at(place);
    Some(finding)
}

fn dominant_type<G: Graph + ?Sized>(context: &Context<'_, '_, G>) -> Option<Finding> {
    let types = &context.totals.location_types;
    let of_programs = types.iter().filter(|total| OF_PROGRAMS.contains(&total.name.as_slice()));
    let largest = of_programs.max_by_key(|total| total.memory_usage)?;
    let bytes = largest.memory_usage;
    let severity = match bytes {
        0..MEBIBYTE => return None,
        _ if is_share(bytes, TYPE_SHARE_HIGH, context.used) => Severity::High,
        _ if is_share(bytes, TYPE_SHARE, context.used) => Severity::Medium,
        _ => return None,
    };
    let full = String::from_utf8_lossy(&largest.name).into_owned();
    let name = full.strip_suffix("MemoryLocation").unwrap_or(&full);
    let text = format!(
        "{name} is {:.1}% of the heap: {} in {}",
        share(bytes, context.used),
        size(bytes),
        count(largest.count)
    );
    let finding = Finding::new(Kind::DominantType, context.weighed(severity), text)
        .fact("type", full.as_str())
        .fact("count", largest.count)
        .fact("memory_bytes", bytes)
        .fact("percentage_of_heap", share(bytes, context.used))
        .likely(Confidence::Medium, "the program holds data of one sort")
        .check("Look at the largest arrays and strings below, and at what holds them")
        .impact(bytes)
        .at(context.heaviest_owner(|thing| is_of_type(thing, &largest.name)));
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
