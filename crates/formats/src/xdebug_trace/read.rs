//! The lines of both formats.
//!
//! Source: Xdebug 3.2.0, `src/tracing/trace_textual.c` and `trace_computerized.c`.

use memchr::memmem;

/// A line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TraceLine<'a> {
    /// A call begins. The outermost one has depth 1.
    Begin(TracedCall<'a>),
    /// A call ends, and with it those that it made.
    End { depth: u32, time_ns: i64 },
    /// The request ends.
    Finish { time_ns: i64 },
    /// A return value, an assignment, or a head.
    Other,
}

/// A call that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TracedCall<'a> {
    pub(super) depth: u32,
    /// Since the request began.
    pub(super) time_ns: i64,
    pub(super) function: &'a [u8],
    /// Where the function was called: a place in the caller.
    pub(super) call_file: &'a [u8],
    pub(super) call_line: i64,
}

/// The columns by which a deeper call is indented.
const INDENT: usize = 2;

/// The spaces between the memory and the arrow of a call at depth 1.
const FIRST_ARROW: usize = 3;

/// Parses a line of the format for people; `None` for one that is none of it.
pub(super) fn textual(line: &[u8]) -> Option<TraceLine<'_>> {
    let text = line.trim_ascii_end();
    if text.is_empty() || text.starts_with(b"TRACE ") {
        return Some(TraceLine::Other);
    }
    let (seconds, rest) = word(text)?;
    let Some(time_ns) = nanoseconds(seconds) else {
        // A return value or an assignment stands below its call, without a time.
        let is_below =
            text.starts_with(b" ") && [&b" >=> "[..], b" => "].iter().any(|arrow| has(text, arrow));
        return is_below.then_some(TraceLine::Other);
    };
    let (memory, rest) = word(rest)?;
    let _memory = number(memory)?;
    if rest.trim_ascii().is_empty() {
        return Some(TraceLine::Finish { time_ns });
    }
    let rest = without_difference(rest);
    let indent = rest.iter().take_while(|&&byte| byte == b' ').count();
    let call = rest[indent..].strip_prefix(b"-> ");
    let Some(call) = call else {
        return [&b">=> "[..], b"=> "]
            .iter()
            .any(|arrow| rest[indent..].starts_with(arrow))
            .then_some(TraceLine::Other);
    };
    let depth = u32::try_from((indent + INDENT).checked_sub(FIRST_ARROW)? / INDENT).ok()?;
    let (call, place) = call.split_at(memchr::memrchr(b' ', call)?);
    let colon = memchr::memrchr(b':', place)?;
    let (call_file, call_line) = (&place[1..colon], number(&place[colon + 1..])?);
    let function = &call[..arguments(call)?];
    Some(TraceLine::Begin(TracedCall { depth, time_ns, function, call_file, call_line }))
}

/// The rest of a line behind the difference of memory, which older releases may write.
fn without_difference(rest: &[u8]) -> &[u8] {
    match word(rest) {
        Some((first, behind)) if first.len() > 1 && number(first).is_some() => behind,
        _ => rest,
    }
}

/// Where the arguments of a call begin. Names of closures and of anonymous classes hold paths, which may hold parentheses.
fn arguments(call: &[u8]) -> Option<usize> {
    let end_of_name =
        memmem::find(call, b"{closure:").map_or(0, |at| at + memchr::memchr(b'}', &call[at..]).unwrap_or(0));
    memchr::memchr(b'(', &call[end_of_name..]).map(|at| end_of_name + at)
}

/// Parses a line of the format for programs; `None` for one that is none of it.
pub(super) fn computerized(line: &[u8]) -> Option<TraceLine<'_>> {
    let text = line.strip_suffix(b"\r").unwrap_or(line);
    if text.is_empty()
        || [&b"TRACE "[..], b"Version: ", b"File format: "].iter().any(|head| text.starts_with(head))
    {
        return Some(TraceLine::Other);
    }
    let mut columns = text.split(|&byte| byte == b'\t');
    let mut next = || columns.next();
    let (depth, _number, kind) = (next()?, next()?, next()?);
    let time = next()?;
    match kind {
        b"0" => {
            let _memory = number(next()?)?;
            let function = next()?;
            let _is_of_user = next()?;
            let included = next()?;
            let (call_file, call_line) = (next()?, number(next()?)?);
            // An include is a call of the file.
            let function = if included.is_empty() { function } else { included };
            let (depth, time_ns) = (depth_of(depth)?, nanoseconds(time)?);
            Some(TraceLine::Begin(TracedCall { depth, time_ns, function, call_file, call_line }))
        }
        b"1" => Some(TraceLine::End { depth: depth_of(depth)?, time_ns: nanoseconds(time)? }),
        b"R" | b"A" => Some(TraceLine::Other),
        b"" if depth.is_empty() => Some(TraceLine::Finish { time_ns: nanoseconds(time)? }),
        _ => None,
    }
}

/// Whether a file is of the format for programs, by its first line.
pub(super) fn is_computerized(first: &[u8]) -> bool {
    first.starts_with(b"Version: ")
}

fn depth_of(text: &[u8]) -> Option<u32> {
    u32::try_from(number(text)?).ok().filter(|&depth| depth > 0)
}

fn has(text: &[u8], part: &[u8]) -> bool {
    memmem::find(text, part).is_some()
}

/// The first word, and the rest after it.
fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let end = memchr::memchr(b' ', text).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Parses seconds with a fraction.
fn nanoseconds(text: &[u8]) -> Option<i64> {
    let (seconds, fraction) = text.split_at(memchr::memchr(b'.', text)?);
    let digits = fraction.get(1..).filter(|digits| (1..=9).contains(&digits.len()))?;
    let places = u32::try_from(9 - digits.len()).ok()?;
    if !digits.iter().chain(seconds).all(u8::is_ascii_digit) {
        return None;
    }
    number(seconds)?.checked_mul(1_000_000_000)?.checked_add(number(digits)?.checked_mul(10_i64.pow(places))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(line: Option<TraceLine<'_>>) -> (u32, i64, String, i64) {
        let Some(TraceLine::Begin(call)) = line else { panic!("{line:?} is no call") };
        let name = String::from_utf8(call.function.to_vec()).unwrap();
        (call.depth, call.time_ns, name, call.call_line)
    }

    #[test]
    fn calls_of_both_formats_are_split() {
        let text =
            b"    0.0075     398928     -> Shop->order($items = [0 => 1, 'a (b) c:1' => 2]) /a b.php:9";
        assert_eq!(begin(textual(b"    0.0002     398672   -> {main}() /a.php:0")).0, 1);
        let line = textual(text);
        assert_eq!(begin(line).0, 2);
        let closure = b"    0.0075     399688         -> Shop->{closure:/a (b).php:5-5}($x = 1) /a.php:5";
        assert_eq!(begin(textual(closure)), (4, 7_500_000, "Shop->{closure:/a (b).php:5-5}".to_owned(), 5));
        let line = computerized(b"2\t4\t0\t0.016671\t398928\tShop->order\t1\t\t/a.php\t9\t1\t[0 => 1]");
        assert_eq!(begin(line), (2, 16_671_000, "Shop->order".to_owned(), 9));
        let line = computerized(b"2\t4\t0\t0.5\t1\trequire\t1\t/inc.php\t/a.php\t9");
        assert_eq!(begin(line).2, "/inc.php");
    }

    #[test]
    fn other_lines_are_told_apart_from_calls() {
        assert_eq!(
            computerized(b"3\t2\t1\t0.25\t398712"),
            Some(TraceLine::End { depth: 3, time_ns: 250_000_000 })
        );
        assert_eq!(computerized(b"\t\t\t0.016840\t394208"), Some(TraceLine::Finish { time_ns: 16_840_000 }));
        assert_eq!(computerized(b"3\t2\tR\t\t\tNULL"), Some(TraceLine::Other));
        assert_eq!(textual(b"    0.0077     394208"), Some(TraceLine::Finish { time_ns: 7_700_000 }));
        assert_eq!(textual(b"                          >=> 5"), Some(TraceLine::Other));
        for line in [&b"what"[..], b"1\t2\t0", b"0\t2\t1\t0.1\t3", b"1\t2\t7\t0.1\t3"] {
            assert_eq!(computerized(line), None, "{}", line.escape_ascii());
        }
        for line in [&b"what"[..], b"0.1 2 -> f", b"0.1 x", b"0.1 2   -> f() /a.php:x"] {
            assert_eq!(textual(line), None, "{}", line.escape_ascii());
        }
    }
}
