//! The conventions of other programs for frames, threads and processes in folded stacks.
//!
//! A convention is detected by all of the first lines: if one of them differs, frames are plain names, and lines are
//! kept unchanged.

use super::read;
use crate::frames::location::{self, FrameLocation, decimal};

/// The number of bytes examined, and kept, at the beginning of the input.
pub(super) const HEAD_BYTES: usize = 64 << 10;

/// The form of frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Convention {
    /// Names, or `FUNCTION FILE:LINE`.
    #[default]
    Plain,
    /// `tid:N;file:func:line`.
    ///
    /// Source: CPython 3.15, `profiling/sampling/stack_collector.py`, `CollapsedStackCollector`.
    Tachyon,
    /// `process N:"command";thread (N): name;func (file:line)`.
    ///
    /// Source: py-spy 0.4.3, `corpus/folded/py-spy-*.txt`.
    PySpy,
    /// `P12;T0:34;file:func:line`, with a measured value in place of the count.
    ///
    /// Source: Austin 3.6.0 and 3.7.0, `corpus/folded/austin-*.txt` and `corpus/austin/*.austin`.
    Austin(Measured),
    /// `[name tid=N];function_[j];function_[k]`: how the code of a frame was made, in brackets behind its name.
    ///
    /// Source: async-profiler 4.1, `docs/OutputFormats.md` and `src/frameName.cpp`; FlameGraph, `stackcollapse-perf.pl`.
    Annotated,
}

/// The meaning of Austin's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Measured {
    /// Elapsed microseconds.
    #[default]
    Wall,
    /// Microseconds on a CPU.
    Cpu,
    /// Allocated bytes.
    Memory,
    /// Microseconds, whether the thread was idle, and bytes.
    Full,
}

/// The process and thread of a line's sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StackOrigin<'a> {
    pub(super) process: Option<i64>,
    /// The command line of the process.
    pub(super) command: Option<&'a [u8]>,
    pub(super) thread: Option<u64>,
    pub(super) thread_name: Option<&'a [u8]>,
    pub(super) interpreter: Option<u64>,
}

impl Convention {
    /// Detects the convention of a text that begins with `head`.
    pub(super) fn of(head: &[u8]) -> Self {
        let whole =
            if head.len() < HEAD_BYTES { head.len() } else { memchr::memrchr(b'\n', head).unwrap_or(0) };
        let lines = || head[..whole].split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end);
        if lines().any(|line| line.starts_with(b"# austin:")) {
            return Self::Austin(measured(lines()));
        }
        let stacks = || lines().filter(|line| !line.is_empty() && !line.starts_with(b"#")).map(stack);
        let is_one = |is: fn(&[u8]) -> bool| stacks().next().is_some() && stacks().all(is);
        if is_one(is_austin) {
            Self::Austin(Measured::default())
        } else if is_one(is_tachyon) {
            Self::Tachyon
        } else if is_one(is_py_spy) && stacks().any(names_line) {
            Self::PySpy
        } else if stacks().any(has_annotation) {
            Self::Annotated
        } else {
            Self::Plain
        }
    }

    /// The process and thread of a line, and its frames.
    pub(super) fn split(self, stack: &[u8]) -> (StackOrigin<'_>, &[u8]) {
        let mut origin = StackOrigin::default();
        let mut rest = stack;
        while let Some(after) = self.root(rest, &mut origin) {
            rest = after;
        }
        (origin, rest)
    }

    /// Removes a root that is not a frame from a stack.
    fn root<'a>(self, stack: &'a [u8], origin: &mut StackOrigin<'a>) -> Option<&'a [u8]> {
        match self {
            Self::Plain => None,
            Self::Tachyon => tachyon_root(stack, origin),
            Self::PySpy => py_spy_root(stack, origin),
            Self::Austin(_) => austin_root(stack, origin),
            Self::Annotated => async_profiler_root(stack, origin),
        }
    }

    /// The parts of a frame; `None` if it is only a name.
    pub(super) fn location(self, frame: &[u8]) -> Option<FrameLocation<'_>> {
        let foreign = match self {
            Self::Plain | Self::Annotated => None,
            Self::PySpy => py_spy_location(frame),
            Self::Tachyon | Self::Austin(_) => python_location(frame),
        };
        foreign.or_else(|| location::parse(frame))
    }
}

/// The meaning of the numbers according to Austin's header. In the mode `full`, some writers leave out all but the time.
///
/// Source: austin-python 2.4.0, `austin/format/collapsed_stack.py`, `AustinEventCollapsedStackFormatter`.
fn measured<'a>(lines: impl Iterator<Item = &'a [u8]> + Clone) -> Measured {
    let is_stack = |line: &&[u8]| line.starts_with(b"P");
    let numbers = lines.clone().find(is_stack).and_then(read::split_last_word).map(|(_, numbers)| numbers);
    if numbers.is_some_and(|numbers| !numbers.contains(&b',')) && mode_of(lines.clone()) == Measured::Full {
        return Measured::Wall;
    }
    mode_of(lines)
}

fn mode_of<'a>(mut lines: impl Iterator<Item = &'a [u8]>) -> Measured {
    match lines.find_map(|line| line.strip_prefix(b"# mode: ")).map(<[u8]>::trim_ascii) {
        Some(b"cpu") => Measured::Cpu,
        Some(b"memory") => Measured::Memory,
        Some(b"full") => Measured::Full,
        _ => Measured::Wall,
    }
}

/// Whether a frame is of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CodeOf {
    Program,
    Kernel,
}

/// The name of a frame without its annotation: interpreted (`_[0]`), compiled (`_[1]`, `_[j]`), inlined (`_[i]`), or of the
/// kernel (`_[k]`).
pub(super) fn split_annotation(frame: &[u8]) -> Option<(&[u8], CodeOf)> {
    let (name, kind) = frame.strip_suffix(b"]")?.split_last_chunk::<3>()?;
    match kind {
        b"_[0" | b"_[1" | b"_[j" | b"_[i" if !name.is_empty() => Some((name, CodeOf::Program)),
        b"_[k" if !name.is_empty() => Some((name, CodeOf::Kernel)),
        _ => None,
    }
}

fn has_annotation(stack: &[u8]) -> bool {
    stack.split(|&byte| byte == b';').any(|frame| split_annotation(frame).is_some())
}

/// Parses `[tid=N]` or `[name tid=N]`.
fn async_profiler_root<'a>(stack: &'a [u8], origin: &mut StackOrigin<'a>) -> Option<&'a [u8]> {
    let (root, rest) = first(stack);
    let inside = root.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let at = memchr::memmem::rfind(inside, b"tid=").filter(|_| origin.thread.is_none())?;
    origin.thread = Some(number(&inside[at + 4..])?);
    origin.thread_name = Some(inside[..at].trim_ascii_end()).filter(|name| !name.is_empty());
    Some(rest)
}

/// A line without its count.
fn stack(line: &[u8]) -> &[u8] {
    read::split_last_word(line).map_or(line, |(stack, _)| stack)
}

/// Whether the stack begins with a process and a thread.
fn is_austin(stack: &[u8]) -> bool {
    let mut origin = StackOrigin::default();
    let rest = austin_root(stack, &mut origin).and_then(|rest| austin_root(rest, &mut origin));
    rest.is_some() && origin.process.is_some() && origin.thread.is_some()
}

fn is_tachyon(stack: &[u8]) -> bool {
    let (origin, frames) = Convention::Tachyon.split(stack);
    let mut frames = frames.split(|&byte| byte == b';');
    origin.thread.is_some() && frames.all(|frame| python_location(frame).is_some())
}

/// Whether the stack consists of roots and frames with parentheses.
fn is_py_spy(stack: &[u8]) -> bool {
    let (_, frames) = Convention::PySpy.split(stack);
    frames.is_empty() || frames.split(|&byte| byte == b';').all(|frame| py_spy_location(frame).is_some())
}

fn names_line(stack: &[u8]) -> bool {
    let (_, frames) = Convention::PySpy.split(stack);
    frames
        .split(|&byte| byte == b';')
        .any(|frame| py_spy_location(frame).is_some_and(|location| location.line.is_some()))
}

/// The first frame of a stack and the others.
fn first(stack: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b';', stack) {
        Some(at) => (&stack[..at], &stack[at + 1..]),
        None => (stack, b""),
    }
}

/// Parses `tid:N`.
fn tachyon_root<'a>(stack: &'a [u8], origin: &mut StackOrigin<'a>) -> Option<&'a [u8]> {
    let (root, rest) = first(stack);
    let thread = number(root.strip_prefix(b"tid:").filter(|_| origin.thread.is_none())?)?;
    origin.thread = Some(thread);
    Some(rest)
}

/// Parses `P12`, `T34` or `T0:34`.
fn austin_root<'a>(stack: &'a [u8], origin: &mut StackOrigin<'a>) -> Option<&'a [u8]> {
    let (root, rest) = first(stack);
    match root.split_first()? {
        (b'P', process) if origin.process.is_none() => {
            origin.process = Some(i64::try_from(number(process)?).ok()?);
        }
        (b'T', thread) if origin.thread.is_none() => {
            let colon = memchr::memchr(b':', thread);
            let thread = number(colon.map_or(thread, |at| &thread[at + 1..]))?;
            origin.interpreter = colon.and_then(|at| number(&root[1..=at]));
            origin.thread = Some(thread);
        }
        _ => return None,
    }
    Some(rest)
}

/// Parses `process N:"command"`, `thread (N)` or `thread (N): name`.
fn py_spy_root<'a>(stack: &'a [u8], origin: &mut StackOrigin<'a>) -> Option<&'a [u8]> {
    if let Some(process) = stack.strip_prefix(b"process ") {
        let colon = memchr::memchr(b':', process)?;
        let command = process[colon + 1..].strip_prefix(b"\"")?;
        // A command may hold semicolons; it ends with its quote.
        let end = memchr::memmem::find(command, b"\";");
        let end = end.or_else(|| command.ends_with(b"\"").then(|| command.len() - 1))?;
        origin.process = Some(i64::try_from(number(&process[..colon])?).ok()?);
        origin.command = Some(&command[..end]);
        return Some(command.get(end + 2..).unwrap_or_default());
    }
    let (root, rest) = first(stack);
    let thread = root.strip_prefix(b"thread (")?;
    let close = memchr::memchr(b')', thread)?;
    let name = thread[close + 1..].strip_prefix(b": ");
    if origin.thread.is_some() || (name.is_none() && close + 1 < thread.len()) {
        return None;
    }
    origin.thread = Some(number(&thread[..close])?);
    let quoted = name.and_then(|name| name.strip_prefix(b"\"")?.strip_suffix(b"\""));
    origin.thread_name = quoted.or(name);
    Some(rest)
}

/// Parses a decimal number, or a hexadecimal one after `0x`.
fn number(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok().filter(|text| !text.starts_with('+'))?;
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Parses `file:func:line`. The file `~` and the line 0 stand for none, and Austin leaves out both (`:GC:`).
fn python_location(frame: &[u8]) -> Option<FrameLocation<'_>> {
    if let Some(function) = frame.strip_prefix(b":").and_then(|rest| rest.strip_suffix(b":"))
        && memchr::memchr(b':', function).is_none()
    {
        return Some(FrameLocation { function, file: None, line: None });
    }
    let colon = memchr::memrchr(b':', frame)?;
    let line = decimal(&frame[colon + 1..])?;
    let at = memchr::memrchr(b':', &frame[..colon])?;
    let (file, function) = (&frame[..at], &frame[at + 1..colon]);
    let file = (!matches!(file, b"" | b"~")).then_some(file);
    Some(FrameLocation { function, file, line: (line > 0).then_some(line) })
}

/// Parses `func (file:line)` or `func (file)`.
fn py_spy_location(frame: &[u8]) -> Option<FrameLocation<'_>> {
    let inside = frame.strip_suffix(b")")?;
    let open = memchr::memmem::rfind_iter(inside, b" (").find(|&at| is_balanced(&inside[at + 2..]))?;
    let (function, place) = (&inside[..open], &inside[open + 2..]);
    let split = memchr::memrchr(b':', place).and_then(|at| Some((&place[..at], decimal(&place[at + 1..])?)));
    let (file, line) = split.map_or((place, None), |(file, line)| (file, Some(line)));
    let is_named = !function.is_empty() && !file.is_empty();
    is_named.then_some(FrameLocation { function, file: Some(file), line: line.filter(|&line| line > 0) })
}

/// Whether each closing parenthesis has an opening one.
fn is_balanced(text: &[u8]) -> bool {
    let mut open = 0u32;
    text.iter().all(|byte| match byte {
        b'(' => {
            open += 1;
            true
        }
        b')' => open.checked_sub(1).map(|left| open = left).is_some(),
        _ => true,
    })
}

impl Measured {
    /// Parses the numbers of a line into `values`. Returns whether they are as many as the mode has.
    pub(super) fn parse(self, text: &[u8], values: &mut Vec<i64>) -> bool {
        const MOST: usize = 3;
        values.clear();
        for number in text.split(|&byte| byte == b',').map(decimal) {
            match number {
                Some(number) if values.len() < MOST => values.push(number),
                _ => return false,
            }
        }
        let is_full = self == Self::Full;
        match values[..] {
            [time, ref mut idle, _] if is_full => *idle = if *idle == 0 { time } else { 0 },
            [_] if !is_full => {}
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_convention_is_detected_by_all_lines() {
        let of = |text: &str| Convention::of(text.as_bytes());
        assert_eq!(of("tid:7;a.py:f:3 2\ntid:8;~:<GC>:0 1\n"), Convention::Tachyon);
        assert_eq!(of("f (a.py:3);g (b.py:4) 2\nthread (7) 1\n"), Convention::PySpy);
        assert_eq!(of("P1;T0:2;a.py:f:3 20\n"), Convention::Austin(Measured::Wall));
        assert_eq!(of("# austin: 3.6.0\n# mode: full\n\nP1;T2 1,0,-5\n"), Convention::Austin(Measured::Full));
        let time_only = "# python: 3.11.7\n# austin: 4.0.0\n# mode: full\nP1;T0:2;a.py:f:3 20\n";
        assert_eq!(of(time_only), Convention::Austin(Measured::Wall));
        assert_eq!(of("[main tid=7];a/B.c_[j];d_[k] 3\nx 1\n"), Convention::Annotated);
        for plain in [
            "main /a.php:3;f /b.php:4 2\n",
            "f (a.py:3) 2\nmain 1\n",
            "main (libc.so.6) 3\n",
            "tid:7;main 2\n",
            "P1;T2;a 3\nmain 4\n",
            "# f (a.py:3) 2\n",
            "",
        ] {
            assert_eq!(of(plain), Convention::Plain, "{plain}");
        }
    }

    #[test]
    fn frames_are_split_into_parts() {
        let location = |function, file, line| Some(FrameLocation { function, file, line });
        let py_spy = |text: &'static str| py_spy_location(text.as_bytes());
        assert_eq!(
            py_spy("C.<locals>.f (/my (dir)/a.py:3)"),
            location(b"C.<locals>.f", Some(b"/my (dir)/a.py"), Some(3))
        );
        assert_eq!(py_spy("f(int, long) (libx.so)"), location(b"f(int, long)", Some(b"libx.so"), None));
        assert_eq!(py_spy("f(int)"), None);
        assert_eq!(python_location(b"C:\\a.py:f:3"), location(b"f", Some(b"C:\\a.py"), Some(3)));
        assert_eq!(python_location(b"~:<GC>:0"), location(b"<GC>", None, None));
        assert_eq!(python_location(b"a:f"), None);
        assert_eq!(python_location(b":GC:"), location(b"GC", None, None));
        assert_eq!(python_location(b":a:b:"), None);
    }

    #[test]
    fn annotations_say_how_code_was_made() {
        for (frame, split) in [
            ("java/lang/String.hash_[j]", Some(("java/lang/String.hash", CodeOf::Program))),
            ("f_[0]", Some(("f", CodeOf::Program))),
            ("f_[k]", Some(("f", CodeOf::Kernel))),
            ("f_[2]", None),
            ("_[k]", None),
            ("f[k]", None),
        ] {
            let found = split_annotation(frame.as_bytes());
            assert_eq!(found, split.map(|(name, code): (&str, _)| (name.as_bytes(), code)), "{frame}");
        }
        let (origin, frames) = Convention::Annotated.split(b"[pool-1 a tid=34];f_[j]");
        assert_eq!((origin.thread, origin.thread_name), (Some(34), Some(&b"pool-1 a"[..])));
        assert_eq!(frames, b"f_[j]");
    }

    #[test]
    fn processes_and_threads_are_no_frames() {
        let text = br#"process 1:"sh -c a;b";process 2:"py c.py";thread (16): "io";f (a.py:1)"#;
        let (origin, frames) = Convention::PySpy.split(text);
        assert_eq!(
            (origin.process, origin.command, origin.thread),
            (Some(2), Some(&b"py c.py"[..]), Some(16))
        );
        assert_eq!((origin.thread_name, frames), (Some(&b"io"[..]), &b"f (a.py:1)"[..]));
        let (origin, frames) = Convention::PySpy.split(b"thread (0x10): worker one;f (a.py:1)");
        assert_eq!(
            (origin.thread, origin.thread_name, frames),
            (Some(16), Some(&b"worker one"[..]), &b"f (a.py:1)"[..])
        );
        let (origin, frames) = Convention::Austin(Measured::Wall).split(b"P1;T0:2");
        assert_eq!(
            (origin.process, origin.interpreter, origin.thread, frames),
            (Some(1), Some(0), Some(2), &b""[..])
        );
    }

    #[test]
    fn measured_values_are_as_many_as_the_mode_has() {
        let parsed = |text: &[u8], measured: Measured| {
            let mut values = vec![7];
            measured.parse(text, &mut values).then_some(values)
        };
        assert_eq!(parsed(b"12", Measured::Wall), Some(vec![12]));
        assert_eq!(parsed(b"-12", Measured::Memory), Some(vec![-12]));
        assert_eq!(parsed(b"12,0,-5", Measured::Full), Some(vec![12, 12, -5]));
        assert_eq!(parsed(b"12,1,5", Measured::Full), Some(vec![12, 0, 5]));
        for (text, measured) in [
            (&b"12,1"[..], Measured::Full),
            (b"12", Measured::Full),
            (b"1,2,3,4", Measured::Full),
            (b"1,2", Measured::Cpu),
            (b"1,x", Measured::Cpu),
            (b"x", Measured::Wall),
            (b"", Measured::Wall),
        ] {
            assert_eq!(parsed(text, measured), None);
        }
    }
}
