//! Unwinding without a process, and over damaged memory.

use borehole_native::{NativeStack, SectionPool, StackEnd, Unwinder};
use borehole_process::{Image, ImageRecorder, Process, Registers};
use borehole_testkit::Scratch;

use crate::programs;

/// The memory that unwinding the main thread of `nested.c` reads, its registers, and its stack.
fn recorded() -> Option<(Image, Registers, NativeStack)> {
    let program = programs::nested(&Scratch::new(), &["-O2"])?;
    let process = Process::open(program.id()).unwrap();
    let recorder = ImageRecorder::new(&process).unwrap();
    let mut unwinder = Unwinder::new(&SectionPool::default());
    let (registers, stack) = programs::stack(&process, &recorder, &mut unwinder, program.id());
    Some((recorder.finish(), registers, stack))
}

fn unwound(image: &Image, registers: Registers) -> NativeStack {
    let mut stack = NativeStack::default();
    Unwinder::new(&SectionPool::default()).unwind(image, registers, &mut stack).unwrap();
    stack
}

#[test]
fn a_recorded_image_has_the_stack_of_the_process() {
    let Some((image, registers, stack)) = recorded() else { return };
    let again = unwound(&image, registers);
    assert_eq!((&again.frames, again.end), (&stack.frames, StackEnd::Root));
    let mut file = Vec::new();
    image.write(&mut file).unwrap();
    let read = Image::read(file.as_slice()).unwrap();
    assert_eq!(unwound(&read, registers).frames, stack.frames);
}

/// Each return address in turn becomes one of no code: the stack ends there, and its callers are not made up.
#[test]
fn a_corrupted_return_address_ends_the_stack() {
    let Some((image, registers, stack)) = recorded() else { return };
    for (index, caller) in stack.frames.iter().enumerate().skip(1).step_by(17) {
        // The address of the caller is below its stack pointer, except of one that a signal interrupted.
        let mut damaged = image.clone();
        damaged.overwrite(caller.sp - 8, &0x10_u64.to_le_bytes());
        let found = unwound(&damaged, registers);
        if found.end == StackEnd::Root {
            continue;
        }
        assert_eq!(found.end, StackEnd::Corrupted, "{index}");
        assert_eq!(found.frames[..], stack.frames[..index], "{index}");
    }
}

/// Any bytes in place of the stack: unwinding ends, and no frame is outside of code.
#[test]
fn unwinding_ends_whatever_is_on_the_stack() {
    let Some((image, registers, stack)) = recorded() else { return };
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..200 {
        let mut damaged = image.clone();
        for _ in 0..64 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let address = registers.sp + random % 0x2000 / 8 * 8;
            let value = match random >> 60 {
                0..8 => stack.frames[usize::try_from(random >> 32).unwrap() % stack.frames.len()].address,
                8..12 => registers.sp + (random >> 20) % 0x4000,
                _ => random,
            };
            damaged.overwrite(address, &value.to_le_bytes());
        }
        let found = unwound(&damaged, registers);
        assert!(found.frames.len() <= 1 << 14, "{round}");
    }
}
