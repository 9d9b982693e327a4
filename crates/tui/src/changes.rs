//! The list of functions that changed since an earlier profile.

use borehole_analysis::Pattern;
use borehole_analysis::diff::DiffView;

use crate::list::ScrollList;
use crate::since::Since;

/// The list, and what it compares.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangeList {
    /// The compared functions that are shown.
    pub(crate) shown: Vec<usize>,
    pub(crate) list: ScrollList,
    /// The changes by function, if there is a base.
    pub(crate) since: Option<Since>,
    /// The pattern that selected the samples compared with a base.
    pub(crate) compared: Option<String>,
}

impl ChangeList {
    /// The changes of `diff`, which compares samples that match `keep`.
    pub(crate) fn new(keep: Option<&Pattern>, diff: Option<&DiffView>) -> Self {
        let compared = keep.map(|pattern| pattern.as_str().to_owned());
        Self { since: diff.map(Since::new), compared, ..Self::default() }
    }
}
