//! The header of a sample: `COMM [PID/]TID [CPU] TIME: PERIOD EVENT: REST`.
//!
//! `perf script -F` selects fields, so all but the name and the thread may be missing. The name may hold spaces and numbers, so
//! the thread is the number before the CPU or the time, or else the first one that the rest of a header can follow.
//!
//! Source: Linux 6.1, `tools/perf/builtin-script.c`, `perf_sample__fprintf_start` and `process_event`.

/// The event of samples whose header names none.
pub(super) const UNNAMED_EVENT: &[u8] = b"samples";

/// The parts of a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SampleHeader<'a> {
    /// The name of the thread.
    pub(super) name: &'a [u8],
    pub(super) process: Option<i64>,
    pub(super) thread: Option<u64>,
    pub(super) cpu: Option<u32>,
    pub(super) time_ns: Option<i64>,
    pub(super) period: Option<u64>,
    pub(super) event: &'a [u8],
    /// The text behind the event: a frame, or what a tracepoint says.
    pub(super) rest: &'a [u8],
}

impl SampleHeader<'_> {
    /// Whether there is no real name: perf repeats the thread (`:4711`), and the exporter writes `[unknown]`.
    pub(super) fn is_unnamed(&self) -> bool {
        self.name == super::read::UNKNOWN
            || self
                .name
                .strip_prefix(b":")
                .is_some_and(|number| number == b"-1" || digits(number) == self.thread)
    }

    /// The thread; `None` for the one that stands for an unknown one.
    pub(super) fn known_thread(&self) -> Option<u64> {
        self.thread.filter(|&thread| thread > 0 || !self.is_unnamed())
    }
}

/// Parses a header; `None` for another line.
pub(super) fn header(line: &[u8]) -> Option<SampleHeader<'_>> {
    let line = line.trim_ascii();
    // Records that are not samples, which are shown on demand.
    if memchr::memmem::find(line, b"PERF_RECORD_").is_some() {
        return None;
    }
    // A CPU or a time follows the thread for certain; without them, the first number is taken.
    thread_in(line, |rest| bracketed(first_word(rest)).or(time_word(first_word(rest)).map(|_| 0)).is_some())
        .or_else(|| thread_in(line, |_| true))
}

/// Parses a header whose thread is the first number that `is_followed` accepts the rest of.
fn thread_in(line: &[u8], is_followed: impl Fn(&[u8]) -> bool) -> Option<SampleHeader<'_>> {
    let mut at = line.iter().position(u8::is_ascii_whitespace)?;
    loop {
        let name = &line[..at];
        let text = line[at..].trim_ascii_start();
        let word = first_word(text);
        if word.is_empty() {
            return None;
        }
        let rest = text[word.len()..].trim_ascii_start();
        if let Some((process, thread)) = process_and_thread(word)
            && is_followed(rest)
            && let Some(fields) = fields(rest)
        {
            return Some(SampleHeader { name, process, thread, ..fields });
        }
        at = line.len() - text.len() + word.len();
    }
}

fn first_word(text: &[u8]) -> &[u8] {
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    &text[..end]
}

/// `PID/TID`, or one of the two. The thread that perf could not tell is -1.
fn process_and_thread(word: &[u8]) -> Option<(Option<i64>, Option<u64>)> {
    match word.split_once_byte(b'/') {
        None => Some((None, number(word)?)),
        Some((process, thread)) => {
            let process = number(process)?.and_then(|process| i64::try_from(process).ok());
            Some((process, number(thread)?))
        }
    }
}

/// A number; `Some(None)` for -1, which is an unknown one.
fn number(text: &[u8]) -> Option<Option<u64>> {
    if text == b"-1" { Some(None) } else { digits(text).map(Some) }
}

fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The fields behind the thread. There is a time or an event.
fn fields(text: &[u8]) -> Option<SampleHeader<'_>> {
    let mut header = SampleHeader { event: UNNAMED_EVENT, ..SampleHeader::default() };
    let mut text = text;
    if let Some(cpu) = bracketed(first_word(text)) {
        header.cpu = Some(cpu);
        text = after_word(text);
    }
    // The flags of interrupts and preemption, with `--latency` fields: `d..1.`.
    let word = first_word(text);
    if word.len() == 5 && !word.ends_with(b":") && word.contains(&b'.') {
        text = after_word(text);
    }
    header.time_ns = time_word(first_word(text));
    if header.time_ns.is_some() {
        text = after_word(text);
    }
    let has_event = take_event(text, &mut header);
    (has_event || (header.time_ns.is_some() && text.is_empty())).then_some(header)
}

fn after_word(text: &[u8]) -> &[u8] {
    text[first_word(text).len()..].trim_ascii_start()
}

/// `[003]`.
fn bracketed(word: &[u8]) -> Option<u32> {
    let inside = word.strip_prefix(b"[")?.strip_suffix(b"]")?;
    u32::try_from(digits(inside)?).ok()
}

/// `12.000250:`.
fn time_word(word: &[u8]) -> Option<i64> {
    word.strip_suffix(b":").and_then(time_ns)
}

/// Seconds with a fraction of up to nine digits.
fn time_ns(text: &[u8]) -> Option<i64> {
    let (seconds, fraction) = text.split_once_byte(b'.')?;
    let scale = 10_i64.checked_pow(9_u32.checked_sub(u32::try_from(fraction.len()).ok()?)?)?;
    let fraction = i64::try_from(digits(fraction)?).ok()?.checked_mul(scale)?;
    i64::try_from(digits(seconds)?).ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)
}

/// Takes the period, the event and the text behind it. Returns whether there is an event.
fn take_event<'a>(text: &'a [u8], header: &mut SampleHeader<'a>) -> bool {
    let period = digits(first_word(text));
    let text = if period.is_some() { after_word(text) } else { text };
    let word = first_word(text);
    let is_event = |event: &&[u8]| event.iter().any(|byte| !(byte.is_ascii_digit() || *byte == b'.'));
    let Some(event) = word.strip_suffix(b":").filter(is_event) else { return false };
    header.period = period;
    header.event = event;
    header.rest = text[word.len()..].trim_ascii();
    true
}

/// Splitting of bytes, as of strings.
trait SplitOnceByte {
    fn split_once_byte(&self, byte: u8) -> Option<(&[u8], &[u8])>;
}

impl SplitOnceByte for [u8] {
    fn split_once_byte(&self, byte: u8) -> Option<(&[u8], &[u8])> {
        let at = memchr::memchr(byte, self)?;
        Some((&self[..at], &self[at + 1..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_selections_of_fields_are_read() {
        let full =
            header(b"tokio worker 3 4711/4712 [003] 12.000250001:     250000 cpu-clock:pppH: ").unwrap();
        assert_eq!((full.name, full.process, full.thread), (&b"tokio worker 3"[..], Some(4711), Some(4712)));
        assert_eq!((full.cpu, full.time_ns, full.period), (Some(3), Some(12_000_250_001), Some(250_000)));
        assert_eq!((full.event, full.rest), (&b"cpu-clock:pppH"[..], &b""[..]));

        let default =
            header(b"            php  4711 [000]  1.000001:          1 sched:sched_switch: prev_comm=php")
                .unwrap();
        assert_eq!((default.name, default.process, default.thread), (&b"php"[..], None, Some(4711)));
        assert_eq!((default.event, default.rest), (&b"sched:sched_switch"[..], &b"prev_comm=php"[..]));

        let numbered = header(b"sort worker 2 11925  1844.967705:    5025125   cpu-clock: ").unwrap();
        assert_eq!((numbered.name, numbered.thread), (&b"sort worker 2"[..], Some(11925)));

        let timeless = header(b"php 4711 cycles:u: ").unwrap();
        assert_eq!((timeless.time_ns, timeless.event), (None, &b"cycles:u"[..]));
        let eventless = header(b"php 4711 12.5: ").unwrap();
        assert_eq!((eventless.time_ns, eventless.event), (Some(12_500_000_000), UNNAMED_EVENT));
        assert_eq!(header(b":-1 -1/-1 1.0: cycles: ").unwrap().thread, None);
    }

    #[test]
    fn other_lines_are_no_headers() {
        for line in [
            "",
            "php",
            "php 4711",
            "\t  55d0c0a0 f+0x12 (/usr/bin/php)",
            "php 4711 12.5: PERF_RECORD_MMAP2 4711/4711: [0x1000(0x1000) @ 0 08:01 1 1]: r-xp /x",
            "# cmdline : /usr/bin/perf record -g",
            "  file.c:12",
            "php 4711 99999999999999999999.0: ",
        ] {
            assert_eq!(header(line.as_bytes()), None, "{line}");
        }
    }
}
