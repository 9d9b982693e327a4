//! What samples have in common beside their stack, each distinct combination once.

use borehole_model::{LabelsId, Status};
use hashbrown::HashMap;

/// The number of a situation: dense, in order of first appearance.
pub(crate) type SituationId = u32;

/// In what circumstances samples were taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Situation {
    /// Which of the sources that are kept apart.
    pub(crate) source: u32,
    pub(crate) process: Option<i64>,
    pub(crate) thread: Option<u64>,
    pub(crate) interpreter: Option<u64>,
    pub(crate) status: Option<Status>,
    pub(crate) labels: Option<LabelsId>,
    /// How long each sample stands for.
    pub(crate) period_ns: Option<u64>,
    /// Whether sums are of values, and not counts of samples.
    pub(crate) is_valued: bool,
}

/// The flag of a thread that was on a CPU.
///
/// Source: CPython 3.15, `_remote_debugging`: thread status bits.
const ON_CPU: u8 = 2;

impl Situation {
    /// Whether the thread is known to have been on a CPU.
    pub(crate) fn is_on_cpu(&self) -> bool {
        self.status.is_some_and(|Status(bits)| bits & ON_CPU != 0)
    }
}

/// The distinct situations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Situations {
    rows: Vec<Situation>,
    index: HashMap<Situation, SituationId>,
    /// Samples of one situation follow each other.
    last: Option<(Situation, SituationId)>,
}

impl Situations {
    /// The number of a situation. Those beyond 2^32 share the last number.
    #[inline]
    pub(crate) fn intern(&mut self, situation: Situation) -> SituationId {
        match self.last {
            Some((last, id)) if last == situation => id,
            _ => self.look_up(situation),
        }
    }

    fn look_up(&mut self, situation: Situation) -> SituationId {
        let Self { rows, index, .. } = self;
        let id = *index.entry(situation).or_insert_with(|| {
            let Ok(id) = SituationId::try_from(rows.len()) else { return SituationId::MAX };
            rows.push(situation);
            id
        });
        self.last = Some((situation, id));
        id
    }

    pub(crate) fn get(&self, id: SituationId) -> &Situation {
        &self.rows[id as usize]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Situation> {
        self.rows.iter()
    }
}
