//! The heap as a whole: its size, the executing calls, and the method of computing retained sizes.

use crate::graph::children;
use crate::names::NodeType;
use crate::sink::NodeId;

use super::amounts::size;
use super::finding::{Confidence, Fact, FindingKind, FindingSeverity, HeapFinding};
use super::survey::HeapSurvey;

/// The maximum number of calls shown.
const CALLS: usize = 100;

/// The head of a report.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct HeapOverview {
    /// The time of the snapshot; empty if unknown.
    pub captured_at: String,
    /// PHP's version, as in the summary.
    pub php_version: String,
    /// The bytes that PHP's allocator has from the system.
    pub heap_total: u64,
    /// The bytes of it in use.
    pub heap_usage: u64,
    /// The percentage of the memory in use that the graph contains; `None` if unknown, or if no memory is in use.
    pub analyzed_percentage: Option<f64>,
    /// The bytes of the stack of PHP's virtual machine.
    pub vm_stack_bytes: u64,
    /// The bytes of the compiler's arena.
    pub compiler_arena_bytes: u64,
    /// The `memory_limit` in bytes; `None` for no limit.
    pub memory_limit: Option<u64>,
    /// The peak of the memory in use, in bytes.
    pub peak_bytes: u64,
    /// The resident memory of the process in bytes; 0 if unknown.
    pub rss_bytes: u64,
    /// The calls, the innermost first: function and line.
    pub call_stack: Vec<String>,
    /// The number of calls left out.
    pub more_calls: u64,
}

impl HeapOverview {
    pub(super) fn of(survey: &HeapSurvey<'_>) -> Self {
        let summary = &survey.summary;
        let (call_stack, more_calls) = call_stack(survey);
        Self {
            captured_at: survey.graph().created().to_owned(),
            php_version: summary.php_version.clone(),
            heap_total: summary.heap_total,
            heap_usage: survey.used,
            analyzed_percentage: summary.analyzed,
            vm_stack_bytes: summary.vm_stack_total,
            compiler_arena_bytes: summary.compiler_arena_total,
            memory_limit: Some(summary.limit).filter(|&limit| limit > 0 && limit < i64::MAX.unsigned_abs()),
            peak_bytes: summary.peak,
            rss_bytes: summary.rss,
            call_stack,
            more_calls,
        }
    }

    /// The overview as findings, for programs that read findings.
    pub(super) fn findings(&self, survey: &HeapSurvey<'_>) -> Vec<HeapFinding> {
        let cycles = survey.retention.cycles().len();
        vec![
            self.finding(),
            HeapFinding::new(
                FindingKind::CallStack,
                FindingSeverity::Info,
                self.call_stack.first().map_or("", |call| call),
            )
            .fact("frames", self.call_stack.clone())
            .fact("more_frames", self.more_calls),
            HeapFinding::new(
                FindingKind::RetainedExact,
                FindingSeverity::Info,
                "retained sizes are exact, also within cycles",
            )
            .fact("cycles", cycles)
            .likely(Confidence::High, ""),
        ]
    }

    fn finding(&self) -> HeapFinding {
        let text = format!(
            "{} of {} in use; VM stack {}, compiler {}",
            size(self.heap_usage),
            size(self.heap_total),
            size(self.vm_stack_bytes),
            size(self.compiler_arena_bytes)
        );
        HeapFinding::new(FindingKind::Overview, FindingSeverity::Info, text)
            .fact("zend_mm_heap_total", self.heap_total)
            .fact("zend_mm_heap_usage", self.heap_usage)
            .fact("vm_stack_total", self.vm_stack_bytes)
            .fact("compiler_arena_total", self.compiler_arena_bytes)
            .fact("heap_memory_analyzed_percentage", Fact::from(self.analyzed_percentage.unwrap_or_default()))
            .fact("memory_get_peak_usage", self.peak_bytes)
    }
}

/// The calls, the innermost first, and the number of further ones.
fn call_stack(survey: &HeapSurvey<'_>) -> (Vec<String>, u64) {
    let graph = survey.graph();
    let mut roots = children(graph, None);
    let Some(stack) = roots.find(|root| graph.node_type(root.node) == NodeType::CALL_FRAMES) else {
        return (Vec::new(), 0);
    };
    let mut frames = survey.children(stack.node);
    let shown = frames.by_ref().take(CALLS).map(|frame| call(survey, frame.node)).collect();
    (shown, frames.count() as u64)
}

fn call(survey: &HeapSurvey<'_>, frame: NodeId) -> String {
    let words = &survey.words;
    let name = survey.attribute(frame, words.function_name).map(|name| survey.text(name));
    let name = name.unwrap_or_else(|| "?".to_owned());
    match survey.number(frame, words.line_number) {
        Some(line) => format!("{name}:{line}"),
        None => format!("{name}()"),
    }
}
