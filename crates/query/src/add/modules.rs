//! The files of native code that an input states.

use borehole_model::StatedModules;

/// The files stated so far. Recordings of running programs state them behind the samples.
#[derive(Debug)]
pub(super) struct InputModules {
    known: StatedModules,
    is_changed: bool,
    /// Whether files were stated that samples before them are in.
    is_late: bool,
}

impl InputModules {
    pub(super) fn new(known: &StatedModules) -> Self {
        Self { known: known.clone(), is_changed: false, is_late: false }
    }

    /// Takes a stated file. `is_behind`: it comes after samples of native code.
    pub(super) fn take(&mut self, text: &[u8], is_behind: bool) {
        if self.known.add(text) {
            self.is_changed = true;
            self.is_late |= is_behind;
        }
    }

    /// The files, if they have changed.
    pub(super) fn changed(&mut self) -> Option<&StatedModules> {
        std::mem::take(&mut self.is_changed).then_some(&self.known)
    }

    /// All files, if some of them came late.
    pub(super) fn late(&self) -> Option<&StatedModules> {
        self.is_late.then_some(&self.known)
    }
}
