//! The lines below a header.

use memchr::memmem;

/// The symbol of an address without one, and the module of one that lies in none.
///
/// Source: Linux 6.1, `tools/perf/util/evsel_fprintf.c` and `map.c`.
pub(super) const UNKNOWN: &[u8] = b"[unknown]";

/// In place of the module, for functions that the compiler put into the one below.
pub(super) const INLINED: &[u8] = b"inlined";

/// A line of a call chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChainFrame<'a> {
    /// The hexadecimal digits of the address.
    pub(super) address: &'a [u8],
    /// The symbol; `None` if there is none.
    pub(super) symbol: Option<&'a [u8]>,
    /// Bytes from the start of the symbol.
    pub(super) offset: Option<i64>,
    /// The module; `None` if the line has none.
    pub(super) module: Option<&'a [u8]>,
}

/// Parses `ADDRESS SYMBOL+0xOFFSET (MODULE)`, of which symbol and module may be missing; `None` for another line.
pub(super) fn frame(line: &[u8]) -> Option<ChainFrame<'_>> {
    let text = line.trim_ascii();
    let digits = text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (address, rest) = text.split_at(digits);
    if address.is_empty() || !(rest.is_empty() || rest.starts_with(b" ")) {
        return None;
    }
    let (symbol, module) = split_module(rest.trim_ascii());
    let symbol = Some(symbol).filter(|symbol| !symbol.is_empty() && *symbol != UNKNOWN);
    let (symbol, offset) = symbol.map_or((None, None), |symbol| {
        let (symbol, offset) = split_offset(symbol);
        (Some(symbol), offset)
    });
    Some(ChainFrame { address, symbol, offset, module })
}

/// Splits `SYMBOL (MODULE)`. Both may hold spaces and parentheses: symbols of C++ do, and modules that were deleted.
fn split_module(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    const DELETED: &[u8] = b" (deleted))";
    let Some(inside) = text.strip_suffix(b")") else { return (text, None) };
    let searched = text.strip_suffix(DELETED).unwrap_or(inside);
    if let Some(open) = memmem::rfind(searched, b" (") {
        return (text[..open].trim_ascii_end(), Some(&inside[open + 2..]));
    }
    match inside.strip_prefix(b"(") {
        Some(module) => (b"", Some(module)),
        None => (text, None),
    }
}

fn split_offset(symbol: &[u8]) -> (&[u8], Option<i64>) {
    let Some(plus) = memmem::rfind(symbol, b"+0x") else { return (symbol, None) };
    let digits = std::str::from_utf8(&symbol[plus + 3..]).ok();
    match digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
        Some(offset) => (&symbol[..plus], Some(offset.cast_signed())),
        None => (symbol, None),
    }
}

/// Whether a text is the digits of an address.
pub(super) fn is_address(text: &[u8]) -> bool {
    (1..=16).contains(&text.len()) && text.iter().all(u8::is_ascii_hexdigit)
}

/// The source of a frame, on the line below it (`-F +srcline`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source<'a> {
    /// A file and a line, 0 if that is unknown.
    Line(&'a [u8], i64),
    /// There is no debugging information.
    Unknown,
}

/// Parses `FILE:LINE`, or what stands for an unknown one: `??:0`, `MODULE[ADDRESS]` or `MODULE+0xADDRESS`. ` (inlined)` may
/// follow. `None` for another line.
///
/// Source: Linux 6.1, `tools/perf/util/srcline.c` and `map.c`, `map__fprintf_srcline`.
pub(super) fn source(line: &[u8]) -> Option<Source<'_>> {
    let text = line.trim_ascii();
    let text = text.strip_suffix(b" (inlined)").unwrap_or(text);
    let is_address =
        |at: usize, skipped: usize, end: usize| text.get(at + skipped..end).is_some_and(is_address);
    if let Some(open) = memchr::memrchr(b'[', text).filter(|_| text.ends_with(b"]"))
        && is_address(open, 1, text.len() - 1)
    {
        return Some(Source::Unknown);
    }
    if memmem::rfind(text, b"+0x").is_some_and(|plus| is_address(plus, 3, text.len())) {
        return Some(Source::Unknown);
    }
    let colon = memchr::memrchr(b':', text).filter(|&colon| colon > 0)?;
    let number = std::str::from_utf8(&text[colon + 1..]).ok()?.parse().ok().filter(|&number| number >= 0)?;
    Some(match &text[..colon] {
        b"??" => Source::Unknown,
        file => Source::Line(file, number),
    })
}

/// Code that a process has mapped, by its place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MappedCode<'a> {
    /// The build ID; empty if it is not stated.
    pub(super) build_id: &'a str,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) path: &'a str,
}

/// Parses a record of mapped code: `[0xSTART(0xSIZE) @ OFFSET DEVICE INODE GENERATION]: r-xp PATH`, where a build ID in angle
/// brackets may replace the numbers behind the offset. `None` for another line.
///
/// Source: Linux 6.1, `tools/perf/util/event.c`, `perf_event__fprintf_mmap2`.
pub(super) fn mapped_code(line: &[u8]) -> Option<MappedCode<'_>> {
    let text = std::str::from_utf8(line).ok()?;
    let (_, text) = text.split_once("PERF_RECORD_MMAP")?;
    let (_, text) = text.split_once('[')?;
    let (range, text) = text.split_once("]: ")?;
    let (access, path) = text.trim_end().split_once(' ')?;
    if !access.contains('x') || !path.starts_with('/') {
        return None;
    }
    let (memory, file) = range.split_once(" @ ")?;
    let size = memory.split_once('(')?.1.strip_suffix(')')?;
    let hex = |number: &str| u64::from_str_radix(number.trim_start_matches("0x"), 16).ok();
    let mut file = file.split(' ');
    let start = hex(file.next()?)?;
    let build_id = file.next()?.strip_prefix('<').and_then(|id| id.strip_suffix('>')).unwrap_or_default();
    let end = start.checked_add(hex(size)?).filter(|&end| end > start)?;
    Some(MappedCode { build_id, start, end, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(line: &str) -> (String, Option<String>, Option<i64>, Option<String>) {
        let frame = frame(line.as_bytes()).unwrap();
        let owned = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (owned(frame.address), frame.symbol.map(owned), frame.offset, frame.module.map(owned))
    }

    #[test]
    fn symbols_and_modules_with_spaces_and_parentheses_are_told_apart() {
        let text = |text: &str| Some(text.to_owned());
        let plain = "\t    55d0c0a0 zif_usleep+0x2a (/usr/bin/php8.2)";
        assert_eq!(
            parts(plain),
            ("55d0c0a0".into(), text("zif_usleep"), Some(0x2a), text("/usr/bin/php8.2"))
        );
        let cpp = "\t 1 std::f(int, (anonymous namespace)::A<(B)1>)+0x1 (/lib/a b.so (deleted))";
        let symbol = text("std::f(int, (anonymous namespace)::A<(B)1>)");
        assert_eq!(parts(cpp), ("1".into(), symbol, Some(1), text("/lib/a b.so (deleted)")));
        assert_eq!(parts(" ab [unknown] ([unknown])"), ("ab".into(), None, None, text("[unknown]")));
        assert_eq!(parts(" ab f (inlined)"), ("ab".into(), text("f"), None, text("inlined")));
        assert_eq!(parts(" ab f(int)"), ("ab".into(), text("f(int)"), None, None));
        assert_eq!(parts(" ab (/lib/x)"), ("ab".into(), None, None, text("/lib/x")));
        assert_eq!(parts(" ab"), ("ab".into(), None, None, None));
    }

    #[test]
    fn mapped_code_is_a_module_with_the_build_id_that_is_stated() {
        let line = |range: &str, rest: &str| {
            format!("php 9 59.75: PERF_RECORD_MMAP2 9/9: [0x55fab5868000(0x1000) @ {range}]: {rest}")
        };
        let found = |line: String| {
            mapped_code(line.as_bytes()).map(|MappedCode { build_id, start, end, path }| {
                format!("{build_id}|{start:x}-{end:x}|{path}")
            })
        };
        let numbers = "0x1000 fe:00 5326958 1644032496";
        assert_eq!(found(line(numbers, "r-xp /usr/bin/a b")).unwrap(), "|1000-2000|/usr/bin/a b");
        assert_eq!(found(line("0 <5f3a01>", "r-xp /x")).unwrap(), "5f3a01|0-1000|/x");
        for (range, rest) in
            [(numbers, "r--p /x"), (numbers, "r-xp [vdso]"), ("0xffffffffffffffff 0", "r-xp /x"), ("", "")]
        {
            assert_eq!(found(line(range, rest)), None, "{range} {rest}");
        }
    }

    #[test]
    fn source_lines_are_no_frames() {
        assert_eq!(frame(b"  main.c:12"), None);
        assert_eq!(source(b"  main.c:12"), Some(Source::Line(b"main.c", 12)));
        assert_eq!(source(b"  main.c:12 (inlined)"), Some(Source::Line(b"main.c", 12)));
        for unknown in ["  ??:0", "  [kernel.kallsyms][ffffffff817554ea]", "  libc.so.6+0x1f"] {
            assert_eq!(source(unknown.as_bytes()), Some(Source::Unknown), "{unknown}");
        }
        for other in ["  no line", "  a:-1", "  [x]", "  f+0xg"] {
            assert_eq!(source(other.as_bytes()), None, "{other}");
        }
    }
}
