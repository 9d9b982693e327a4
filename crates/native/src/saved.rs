//! Functions that keep their caller's stack pointer in memory, because they align their own stack.

use gimli::{
    CfaRule, EhFrame, Encoding, Format, Operation, RegisterRule, UnwindExpression, UnwindTableRow, X86_64,
};

use crate::frame_table::{ADDRESS_BYTES, Bytes};

/// A place in memory, relative to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Relative to the stack pointer.
    Stack(i64),
    /// Relative to the frame pointer.
    Frame(i64),
}

/// Where a function has saved the state of its caller. Compilers write this where a frame has to begin at a multiple of more than
/// 16 bytes, as vectors do; framehop reads no memory for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SavedCaller {
    /// Where the stack pointer of the caller is, as it was after the call returned.
    pub(crate) stack_pointer: Place,
    /// Where the frame pointer of the caller is; `None` if it is still in its register.
    pub(crate) frame_pointer: Option<Place>,
}

impl SavedCaller {
    /// Where this row of a table says that the caller's state is; `None` if it is found by registers alone.
    pub(crate) fn of(row: &UnwindTableRow<usize>, frames: &EhFrame<Bytes<'_>>) -> Option<Self> {
        let CfaRule::Expression(cfa) = row.cfa() else { return None };
        let [base, Operation::Deref { size: ADDRESS_BYTES, .. }] = operations(cfa, frames)? else {
            return None;
        };
        let frame_pointer = match row.register(X86_64::RBP) {
            Some(RegisterRule::Expression(at)) => Some(place(&operations::<1>(&at, frames)?[0])?),
            _ => None,
        };
        Some(Self { stack_pointer: place(&base)?, frame_pointer })
    }
}

/// The operations of an expression, if it has this many.
fn operations<'s, const N: usize>(
    expression: &UnwindExpression<usize>,
    frames: &EhFrame<Bytes<'s>>,
) -> Option<[Operation<Bytes<'s>>; N]> {
    let encoding = Encoding { address_size: ADDRESS_BYTES, format: Format::Dwarf32, version: 4 };
    let mut left = expression.get(frames).ok()?.operations(encoding);
    let mut found = Vec::new();
    while let Some(operation) = left.next().ok()? {
        found.push(operation);
    }
    found.try_into().ok()
}

/// The place that an operation computes.
fn place(operation: &Operation<Bytes<'_>>) -> Option<Place> {
    match *operation {
        Operation::RegisterOffset { register: X86_64::RSP, offset, .. } => Some(Place::Stack(offset)),
        Operation::RegisterOffset { register: X86_64::RBP, offset, .. } => Some(Place::Frame(offset)),
        _ => None,
    }
}
