//! The limit on how often a search behind damage may look at the same bytes.
//!
//! A search tries records that may begin at any byte, and each may be long, so without a limit a crafted input is
//! examined as often as it has bytes. [`Effort`] counts the bytes examined in vain: those of a failed record, of a
//! candidate, and after a doubtful record. The budget is [`Effort::START`] plus [`Effort::PER_BYTE`] for each byte that
//! the search has reached, and as many again for each byte up to the furthest one examined. When it is spent, the search
//! advances without examining until there is budget again.
//!
//! So a search is linear: the bytes spent exceed `START + 2 * PER_BYTE * (bytes of the input)` by at most one attempt.
//! Work that takes time without examining bytes, such as a warning or a context of a decoder, is counted as so many
//! bytes. Ordinary damage does not come near the limit.

/// The number of bytes examined in vain, and the furthest one.
#[derive(Debug, Default)]
pub struct Effort {
    spent: u64,
    /// The offset of the furthest byte examined.
    furthest: u64,
}

impl Effort {
    /// The initial budget.
    pub const START: u64 = 1 << 20;

    /// The budget of each byte of the input, granted twice.
    pub const PER_BYTE: u64 = 4;

    /// The number of bytes that could be examined in the time that one damage takes to be reported and left behind.
    pub const PER_DAMAGE: u64 = 512;

    /// Counts `looked_at` bytes from `offset` on.
    pub fn spend(&mut self, offset: u64, looked_at: u64) {
        self.spent = self.spent.saturating_add(looked_at);
        self.furthest = self.furthest.max(offset.saturating_add(looked_at));
    }

    /// Counts work that takes as long as examining `bytes` bytes, but examines none.
    pub const fn work(&mut self, bytes: u64) {
        self.spent = self.spent.saturating_add(bytes);
    }

    /// Whether there is budget left at the position of the search.
    #[must_use]
    pub const fn is_left(&self, offset: u64) -> bool {
        offset >= self.left_from()
    }

    /// The first offset of the search at which there is budget.
    #[must_use]
    pub const fn left_from(&self) -> u64 {
        self.spent.saturating_sub(Self::START).div_ceil(Self::PER_BYTE).saturating_sub(self.furthest)
    }

    /// The number of bytes examined, in total.
    #[must_use]
    pub const fn spent(&self) -> u64 {
        self.spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spent_budget_returns_with_the_bytes_that_are_reached() {
        let mut effort = Effort::default();
        effort.work(Effort::START);
        assert!(effort.is_left(0));
        effort.work(Effort::PER_DAMAGE);
        let next = Effort::PER_DAMAGE / Effort::PER_BYTE;
        assert_eq!(effort.left_from(), next);
        assert!(!effort.is_left(next - 1) && effort.is_left(next));
        effort.spend(next, 0);
        assert!(effort.is_left(0));
    }
}
