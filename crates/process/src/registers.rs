//! The registers of a stopped thread.

/// The registers that unwinding a stack begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// The address of the next instruction: `rip`.
    pub ip: u64,
    /// The stack pointer: `rsp`.
    pub sp: u64,
    /// The frame pointer, or whatever the code keeps in that register: `rbp`.
    pub bp: u64,
}
