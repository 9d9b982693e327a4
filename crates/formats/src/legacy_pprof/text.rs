//! The lines of a text profile.
//!
//! Source: google/pprof, `profile/legacy_profile.go`; Go 1.19, `runtime/pprof/pprof.go`; gperftools 2.10, `src/heap-profile-table.cc`.

/// The kind of a profile, by its first line.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TextKind {
    /// Memory. The mean number of bytes between samples; `None` if everything is counted.
    Heap { rate: Option<u64> },
    /// Waiting for locks.
    Contention,
    /// Things that its name states, such as goroutines.
    Count(Vec<u8>),
}

impl TextKind {
    /// Parses the first line; `None` if it is of something else.
    pub(super) fn of(line: &[u8]) -> Option<Self> {
        let text = line.trim_ascii();
        if let Some(rest) = text.strip_prefix(b"heap profile:") {
            let at = memchr::memrchr(b'@', rest)?;
            let mut form = rest[at + 1..].trim_ascii().split(|&byte| byte == b'/');
            let (name, rate) = (form.next()?, form.next().and_then(number));
            return Some(Self::Heap {
                rate: match name {
                    // Go writes twice its rate, for programs that read the oldest form.
                    b"heap" => rate.map(|rate| rate / 2),
                    b"heap_v2" | b"heapz_v2" => rate,
                    _ => None,
                }
                .filter(|&rate| rate > 1),
            });
        }
        if text.starts_with(b"--- contention:") || text.starts_with(b"--- mutex:") {
            return Some(Self::Contention);
        }
        let at = memchr::memmem::find(text, b" profile: total ")?;
        Some(Self::Count(text[..at].to_vec()))
    }
}

/// The numbers before the addresses of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SampleNumbers {
    /// Objects and bytes in use, and all that were allocated.
    Heap {
        in_use: [i64; 2],
        all: [i64; 2],
    },
    /// How long in cycles, and how often.
    Contention {
        cycles: i64,
        count: i64,
    },
    Count(i64),
}

/// Splits a sample into its numbers and the text of its addresses; `None` for another line.
pub(super) fn sample<'a>(line: &'a [u8], kind: &TextKind) -> Option<(SampleNumbers, &'a [u8])> {
    let at = memchr::memchr(b'@', line)?;
    let mut numbers = line[..at]
        .split(|byte| matches!(byte, b' ' | b':' | b'[' | b']' | b'\t'))
        .filter(|word| !word.is_empty())
        .map(signed);
    let mut next = || numbers.next().flatten();
    let found = match kind {
        TextKind::Heap { .. } => SampleNumbers::Heap { in_use: [next()?, next()?], all: [next()?, next()?] },
        TextKind::Contention => SampleNumbers::Contention { cycles: next()?, count: next()? },
        TextKind::Count(_) => SampleNumbers::Count(next()?),
    };
    numbers.next().is_none().then_some((found, &line[at + 1..]))
}

/// The addresses of a sample; `None` if one is invalid.
pub(super) fn addresses(text: &[u8]) -> impl Iterator<Item = Option<u64>> {
    let words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words.map(|word| {
        let digits = std::str::from_utf8(word.strip_prefix(b"0x")?).ok()?;
        u64::from_str_radix(digits, 16).ok()
    })
}

/// A frame below a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NamedFrame<'a> {
    pub(super) address: &'a [u8],
    /// `None` if only the address is known.
    pub(super) function: Option<&'a [u8]>,
    pub(super) file: Option<&'a [u8]>,
    pub(super) line: Option<i64>,
}

/// Parses `# ADDRESS FUNCTION+0xOFFSET FILE:LINE`, with tabs between; `None` for another comment.
pub(super) fn named_frame(line: &[u8]) -> Option<NamedFrame<'_>> {
    let mut cells = line.strip_prefix(b"#\t")?.split(|&byte| byte == b'\t').filter(|cell| !cell.is_empty());
    let address = cells.next()?.trim_ascii_end();
    let function = cells.next().map(|cell| match memchr::memmem::rfind(cell, b"+0x") {
        Some(plus) => &cell[..plus],
        None => cell,
    });
    let place = cells.next().map(<[u8]>::trim_ascii_end).unwrap_or_default();
    let (file, line) = match memchr::memrchr(b':', place) {
        Some(colon) => (Some(&place[..colon]), signed(&place[colon + 1..])),
        None => (None, None),
    };
    address.starts_with(b"0x").then_some(NamedFrame { address, function, file, line })
}

/// The text of the labels of a sample: a JSON object.
pub(super) fn labels(line: &[u8]) -> Option<&[u8]> {
    line.strip_prefix(b"# labels: ").map(<[u8]>::trim_ascii)
}

/// Parses `KEY=VALUE` or `KEY = VALUE` of a contention profile.
pub(super) fn setting(line: &[u8]) -> Option<(&[u8], u64)> {
    let at = memchr::memchr(b'=', line)?;
    Some((line[..at].trim_ascii(), number(line[at + 1..].trim_ascii())?))
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn signed(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Objects and bytes that samples stand for, when one is taken every `rate` bytes on average.
///
/// Source: google/pprof, `profile/legacy_profile.go`, `scaleHeapSample`.
#[expect(clippy::cast_possible_truncation, reason = "what is too large becomes the largest")]
pub(super) fn scaled([objects, bytes]: [i64; 2], rate: u64) -> [i64; 2] {
    if objects == 0 || bytes == 0 {
        return [0, 0];
    }
    let mean = bytes as f64 / objects as f64;
    let scale = 1.0 / (1.0 - (-mean / rate as f64).exp());
    [(objects as f64 * scale) as i64, (bytes as f64 * scale) as i64]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_numbers_and_addresses() {
        let heap = TextKind::of(b"heap profile:  2:  64 [ 5: 160] @ heap_v2/524288\n").unwrap();
        assert_eq!(heap, TextKind::Heap { rate: Some(524_288) });
        let numbers = SampleNumbers::Heap { in_use: [1, 32], all: [2, 64] };
        assert_eq!(sample(b"  1: 32 [ 2:  64] @ 0x1 0x2", &heap), Some((numbers, &b" 0x1 0x2"[..])));
        assert_eq!(
            TextKind::of(b"heap profile: 0: 0 [0: 0] @ heap/8192"),
            Some(TextKind::Heap { rate: Some(4096) })
        );
        assert_eq!(
            TextKind::of(b"heap profile: 0: 0 [0: 0] @ heapprofile"),
            Some(TextKind::Heap { rate: None })
        );
        let contention = SampleNumbers::Contention { cycles: 12, count: 3 };
        assert_eq!(sample(b"12 3 @ 0x1", &TextKind::Contention), Some((contention, &b" 0x1"[..])));
        for wrong in [&b"1 @"[..], b"1 2 3 @", b"a b @ 0x1", b"1 2"] {
            assert_eq!(sample(wrong, &TextKind::Contention), None, "{}", wrong.escape_ascii());
        }
        let found: Vec<_> = addresses(b" 0x1 0xff\tx").collect();
        assert_eq!(found, [Some(1), Some(255), None]);
    }

    #[test]
    fn frames_are_told_from_other_comments() {
        let frame = named_frame(b"#\t0x4b41f0\tmain.keep+0x50\t\t./a:b.go:14\r").unwrap();
        assert_eq!(
            (frame.function, frame.file, frame.line),
            (Some(&b"main.keep"[..]), Some(&b"./a:b.go"[..]), Some(14))
        );
        let frame = named_frame(b"#\t0x0").unwrap();
        assert_eq!((frame.address, frame.function), (&b"0x0"[..], None));
        assert_eq!(named_frame(b"# Alloc = 12"), None);
        assert_eq!(labels(b"# labels: {\"a\":\"b\"}"), Some(&b"{\"a\":\"b\"}"[..]));
    }
}
