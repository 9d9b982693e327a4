//! Boxes of a flame graph, laid out in columns of a terminal.

use borehole_analysis::Calls;

use crate::outline::TreeOutline;

/// A call that is at least a column wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlameBox {
    /// The row of the calls.
    pub(crate) frame: usize,
    pub(crate) weight: i64,
    /// The first column.
    pub(crate) start: usize,
    pub(crate) width: usize,
}

impl FlameBox {
    /// Whether the box covers a column.
    pub(crate) const fn holds(&self, column: usize) -> bool {
        self.start <= column && column < self.start + self.width
    }
}

/// The boxes of each level from left to right; the level nearest to the focus comes first.
pub(crate) type Levels = Vec<Vec<FlameBox>>;

/// Lays out `levels` levels of a tree, `width` columns wide for a weight of `whole`.
///
/// A box is as wide as its share. Its edges are rounded, so neighbours never overlap. Boxes narrower than a column are left
/// out, with everything above them.
pub(crate) fn layout(
    outline: &mut TreeOutline,
    calls: &Calls,
    (whole, width, levels): (i64, usize, usize),
) -> Levels {
    let scale = FlameScale { whole: width_of(whole), width };
    let mut found: Levels = Vec::new();
    let mut level = scale.row(outline, (0, u64::MAX), outline.roots());
    while !level.is_empty() && found.len() < levels {
        let mut next = Vec::new();
        for &(node, within, _) in &level {
            let children = outline.children(calls, node);
            next.extend(scale.row(outline, within, children));
        }
        found.push(level.into_iter().map(|(_, _, found)| found).collect());
        level = next;
    }
    found
}

/// The width of a weight; negative weights have none.
fn width_of(weight: i64) -> u64 {
    u64::try_from(weight).unwrap_or(0)
}

#[derive(Clone, Copy)]
struct FlameScale {
    whole: u64,
    width: usize,
}

impl FlameScale {
    /// The column at which a weight ends.
    fn column(self, weight: u64) -> usize {
        let columns = u128::from(weight) * self.width as u128 / u128::from(self.whole.max(1));
        usize::try_from(columns).unwrap_or(self.width).min(self.width)
    }

    /// Nodes side by side, with the weights at which each begins and ends. If some have negative weights, the others together
    /// weigh more than their parent; they are cut off at its end.
    fn row(
        self,
        outline: &TreeOutline,
        (mut start_weight, most): (u64, u64),
        nodes: std::ops::Range<usize>,
    ) -> Vec<(usize, (u64, u64), FlameBox)> {
        let mut row = Vec::new();
        for node in nodes {
            let branch = outline.node(node);
            let end_weight = start_weight.saturating_add(width_of(branch.total_weight)).min(most);
            let start = self.column(start_weight);
            let width = self.column(end_weight).saturating_sub(start);
            if width > 0 {
                let found = FlameBox { frame: branch.frame, weight: branch.total_weight, start, width };
                row.push((node, (start_weight, end_weight), found));
            }
            start_weight = end_weight;
        }
        row
    }
}
