//! One content test per format.
//!
//! Each test reads a bounded number of bytes, allocates nothing, and accepts any bytes.

use borehole_wire::Cursor;

use super::DETECT_BYTES;

/// The magic of an `rbt` segment.
const RBT_MAGIC: &[u8] = b"RELI";

/// The length of a segment header: magic, version, flags, reserved, period, reserved.
const RBT_HEADER_BYTES: usize = 16;

/// Detects the magic and a byte that no text has there; only a beginning of the magic, which a crash may leave; or, in a file
/// damaged at the start, a plausible header further on.
pub(super) fn is_rbt(prefix: &[u8]) -> bool {
    match prefix.strip_prefix(RBT_MAGIC) {
        Some([]) => true,
        Some([version, ..]) if *version < b'\t' => true,
        _ if prefix.len() < RBT_MAGIC.len() => !prefix.is_empty() && RBT_MAGIC.starts_with(prefix),
        _ => memchr::memmem::find_iter(prefix, RBT_MAGIC).any(|at| is_rbt_header(&prefix[at..])),
    }
}

fn is_rbt_header(bytes: &[u8]) -> bool {
    let Some(header) = bytes.get(..RBT_HEADER_BYTES) else { return false };
    header[4] == 1 && header[5] <= 1 && header[6..8] == [0; 2] && header[12..] == [0; 4]
}

/// The magic of a `tachyon` file, in the byte orders in which it is written.
const TACHYON_MAGICS: [&[u8]; 2] = [b"HCAT", b"TACH"];

/// The length of a `tachyon` header.
const TACHYON_HEADER_BYTES: usize = 64;

/// Detects the magic and the version in the same byte order; or the header that a killed profiler leaves: zeros, followed by
/// a Zstandard stream or a thread record.
pub(super) fn is_tachyon(prefix: &[u8]) -> bool {
    match prefix.get(4..8) {
        Some(version) if prefix.starts_with(TACHYON_MAGICS[0]) => version[1..] == [0; 3],
        Some(version) if prefix.starts_with(TACHYON_MAGICS[1]) => version[..3] == [0; 3],
        _ => is_unfinished_tachyon(prefix),
    }
}

fn is_unfinished_tachyon(prefix: &[u8]) -> bool {
    let Some((header, samples)) = prefix.split_at_checked(TACHYON_HEADER_BYTES) else { return false };
    let is_record = |head: &[u8]| head[..8] != [0; 8] && head[12] <= 3 && is_small(&head[8..12]);
    header.iter().all(|&byte| byte == 0)
        && (samples.starts_with(b"\x28\xb5\x2f\xfd") || samples.get(..13).is_some_and(is_record))
}

/// Whether four bytes are a number below 2¹⁶ in either byte order.
fn is_small(bytes: &[u8]) -> bool {
    bytes[..2] == [0; 2] || bytes[2..] == [0; 2]
}

/// The magic of a `trc` batch.
const TRC_MAGIC: &[u8] = b"TRC\0";

/// Detects the magic; or, in a file damaged at the start, a whole header further on, followed by a frame.
pub(super) fn is_trc(prefix: &[u8]) -> bool {
    let batch = |at| prefix.get(at + TRC_MAGIC.len()..).is_some_and(|rest| matches!(rest, [1, 1..=6, ..]));
    prefix.starts_with(TRC_MAGIC) || memchr::memmem::find_iter(prefix, TRC_MAGIC).any(batch)
}

pub(super) fn is_svg(prefix: &[u8]) -> bool {
    trim_start(prefix).starts_with(b"<") && contains(prefix, b"<svg")
}

/// Detects a JSON object of type `file` in the first line.
pub(super) fn is_jsonl(prefix: &[u8]) -> bool {
    let first = trim_start(prefix).split(|&byte| byte == b'\n').next().unwrap_or_default();
    first.starts_with(b"{") && member_starts_with(first, b"\"type\"", b"\"file\"")
}

/// Detects a JSON object of type `meta`, for a run, in the first line.
pub(super) fn is_tachyon_jsonl(prefix: &[u8]) -> bool {
    let first = trim_start(prefix).split(|&byte| byte == b'\n').next().unwrap_or_default();
    first.starts_with(b"{")
        && member_starts_with(first, b"\"type\"", b"\"meta\"")
        && contains(first, b"\"run_id\"")
}

/// Detects a JSON object that names its schema, or has both members that no other profile has.
pub(super) fn is_speedscope(prefix: &[u8]) -> bool {
    let schema = || {
        memchr::memmem::find_iter(prefix, b"\"$schema\"").any(|at| {
            let line = prefix[at..].split(|&byte| byte == b'\n' || byte == b',').next();
            contains(line.unwrap_or_default(), b"speedscope")
        })
    };
    let members = || contains(prefix, b"\"shared\"") && contains(prefix, b"\"profiles\"");
    trim_start(prefix).starts_with(b"{") && (schema() || members())
}

/// Detects a JSON object with the version of processed profiles.
pub(super) fn is_gecko(prefix: &[u8]) -> bool {
    trim_start(prefix).starts_with(b"{") && contains(prefix, b"\"preprocessedProfileVersion\"")
}

/// Whether a JSON text has `key`, with a value that starts with `value`.
pub(super) fn member_starts_with(json: &[u8], key: &[u8], value: &[u8]) -> bool {
    memchr::memmem::find_iter(json, key).any(|at| {
        let rest = trim_start(&json[at + key.len()..]);
        rest.strip_prefix(b":").is_some_and(|rest| trim_start(rest).starts_with(value))
    })
}

/// Detects the signature line, or the header line that names the events.
pub(super) fn is_callgrind(prefix: &[u8]) -> bool {
    let header = |line: &[u8]| line.starts_with(b"events:") || line.starts_with(b"# callgrind format");
    lines(prefix).take(MAX_LINES).any(header)
}

/// Detects protobuf fields that all have the numbers and wire types of a profile, among them a value type or a string.
pub(super) fn is_pprof(prefix: &[u8]) -> bool {
    let mut cursor = Cursor::new(prefix, 0);
    let mut telling = false;
    while !cursor.is_empty() {
        match profile_field(&mut cursor) {
            Some(Field::Telling) => telling = true,
            Some(Field::Other) => {}
            Some(Field::Cut) => break,
            None => return false,
        }
    }
    telling
}

/// Detects resources with their profiles (field 1), optionally a dictionary (field 2), and nothing else: as length-prefixed
/// bytes or as JSON.
///
/// Source: `profiles.proto` of opentelemetry-proto 1.10.0; output of the file exporter of OpenTelemetry's collector.
pub(super) fn is_otlp(prefix: &[u8]) -> bool {
    is_otlp_message(prefix, usize::MAX) || is_otlp_behind_length(prefix) || is_otlp_json(prefix)
}

fn is_otlp_message(prefix: &[u8], length: usize) -> bool {
    let there = &prefix[..prefix.len().min(length)];
    let mut fields = Messages { cursor: Cursor::new(there, 0), left: length, is_other: false };
    let mut telling = false;
    while let Some((number, length, payload)) = fields.next() {
        match number {
            1 if has_scopes(payload, length) => telling = true,
            2 => {}
            _ => return false,
        }
    }
    telling && !fields.is_other
}

/// Detects a length in four bytes, big-endian, or as a varint, followed by a document of that length, or a Zstandard frame.
fn is_otlp_behind_length(prefix: &[u8]) -> bool {
    let fixed = prefix.split_first_chunk::<4>().filter(|(length, _)| length[0] <= 7);
    if let Some((length, document)) = fixed {
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        let there = &document[..document.len().min(length)];
        return is_otlp_message(document, length)
            || is_otlp_json(there)
            || (length > 4 && document.starts_with(b"\x28\xb5\x2f\xfd"));
    }
    let mut cursor = Cursor::new(prefix, 0);
    let length = cursor.varint().ok().and_then(|length| usize::try_from(length).ok());
    length.is_some_and(|length| is_otlp_message(cursor.rest(), length))
}

/// Detects a JSON object that begins with one of the two members that documents have.
fn is_otlp_json(prefix: &[u8]) -> bool {
    const MEMBERS: [&[u8]; 3] = [b"\"resourceProfiles\"", b"\"resource_profiles\"", b"\"dictionary\""];
    let members = trim_start(prefix).strip_prefix(b"{").map(trim_start).unwrap_or_default();
    MEMBERS.iter().any(|name| members.starts_with(name))
}

/// Whether the available fields of a message are those of `ResourceProfiles`: a resource, scopes with profiles, a text.
fn has_scopes(bytes: &[u8], length: usize) -> bool {
    let mut fields = Messages { cursor: Cursor::new(bytes, 0), left: length, is_other: false };
    let mut has_scopes = false;
    while let Some((number, _, payload)) = fields.next() {
        has_scopes |= number == 2 && matches!(payload.first(), None | Some(0x0a | 0x12 | 0x1a));
        fields.is_other |= number > 3;
    }
    has_scopes && !fields.is_other
}

/// The fields of a message that may be cut off; all are messages or texts.
struct Messages<'a> {
    cursor: Cursor<'a>,
    /// The remaining length of the message, available or not.
    left: usize,
    /// Whether something else was found.
    is_other: bool,
}

impl<'a> Messages<'a> {
    /// The next field: its number, its length, and its available bytes.
    fn next(&mut self) -> Option<(u64, usize, &'a [u8])> {
        let before = self.cursor.offset();
        let (tag, length) = (self.cursor.varint().ok()?, self.cursor.varint().ok()?);
        let head = usize::try_from(self.cursor.offset() - before).ok()?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        match self.left.checked_sub(head).and_then(|left| left.checked_sub(length)) {
            Some(left) if tag & 7 == 2 => self.left = left,
            _ => {
                self.is_other = true;
                return None;
            }
        }
        let there = self.cursor.rest().len().min(length);
        Some((tag >> 3, length, self.cursor.bytes(there).ok()?))
    }
}

enum Field {
    /// A value type or a string.
    Telling,
    /// Another field of a profile.
    Other,
    /// A field that continues after the prefix.
    Cut,
}

/// Reads one field of a profile message.
///
/// Source: `profile.proto` of pprof: fields 1 to 6 and 11 are messages or strings, 7 to 10, 12, 14 and 15
/// are integers, 13 is a list of integers, packed or not.
fn profile_field(cursor: &mut Cursor<'_>) -> Option<Field> {
    let Ok(tag) = cursor.varint() else { return Some(Field::Cut) };
    match (tag >> 3, tag & 7) {
        (7..=10 | 12..=15, 0) => Some(cursor.varint().map_or(Field::Cut, |_| Field::Other)),
        (number @ (1..=6 | 11 | 13), 2) => {
            let Ok(length) = cursor.varint() else { return Some(Field::Cut) };
            let length = usize::try_from(length).ok().filter(|&length| length <= MAX_FIELD_BYTES)?;
            let Ok(payload) = cursor.bytes(length) else { return Some(Field::Cut) };
            match number {
                1 | 11 => is_value_type(payload).then_some(Field::Telling),
                6 => Some(Field::Telling),
                _ => Some(Field::Other),
            }
        }
        _ => None,
    }
}

/// The maximum length of a profile's field.
const MAX_FIELD_BYTES: usize = 1 << 28;

/// Whether the payload is two integers, fields 1 and 2, either of which may be absent.
fn is_value_type(payload: &[u8]) -> bool {
    let mut cursor = Cursor::new(payload, 0);
    while !cursor.is_empty() {
        match (cursor.varint(), cursor.varint()) {
            (Ok(0x08 | 0x10), Ok(_)) => {}
            _ => return false,
        }
    }
    true
}

/// The maximum number of lines tested.
const MAX_LINES: usize = 64;

/// The first bytes, in which no text has a zero. Names of PHP's anonymous classes have one further on.
const ZERO_FREE_BYTES: usize = 8;

/// Whether this can be text, and not binary data that happens to contain lines.
fn is_text(prefix: &[u8]) -> bool {
    !prefix.iter().take(ZERO_FREE_BYTES).any(|&byte| byte == 0)
}

/// Detects text in which most meaningful lines are frames: a depth, a name, a file and line.
pub(super) fn is_phpspy(prefix: &[u8]) -> bool {
    let Lines { said, frames, .. } = Lines::of(prefix);
    is_text(prefix) && frames > 0 && frames * 2 >= said
}

/// Detects text in which most meaningful lines end in a number, and a quarter of these are certainly stacks. A line whose end
/// is out of view must have semicolons.
pub(super) fn is_folded(prefix: &[u8]) -> bool {
    let cut = is_text(prefix) && prefix.len() == DETECT_BYTES && memchr::memchr(b'\n', prefix).is_none();
    if cut {
        return contains(prefix, b";") && !contains(prefix, b"{");
    }
    if prefix.starts_with(b"# austin:") {
        return true;
    }
    let Lines { said, counted, stacks, .. } = Lines::of(prefix);
    is_text(prefix) && stacks > 0 && counted * 2 >= said && stacks * 4 >= counted
}

/// The numbers of lines by what they could be.
#[derive(Default)]
struct Lines {
    /// Lines that are neither blank nor comments.
    said: usize,
    /// Frames of phpspy.
    frames: usize,
    /// Lines that end in a number.
    counted: usize,
    /// Those of them that are certainly folded stacks.
    stacks: usize,
}

impl Lines {
    fn of(prefix: &[u8]) -> Self {
        let mut found = Self::default();
        let said = lines(prefix).map(<[u8]>::trim_ascii_end);
        for line in said.filter(|line| !line.is_empty() && !line.starts_with(b"#")).take(MAX_LINES) {
            found.add(line);
        }
        found
    }

    fn add(&mut self, line: &[u8]) {
        self.said += 1;
        let (rest, last) = split_last_word(line);
        if !rest.is_empty() && is_number(last) {
            self.counted += 1;
            // The empty stack is a space.
            self.stacks += usize::from(rest == b" " || is_stack(rest));
        } else if !rest.is_empty() && is_frame(line, last) {
            self.frames += 1;
        }
    }
}

/// Whether the text before a count is a stack and not a sentence: frames with semicolons but no white space between them, or
/// a frame with its location.
fn is_stack(text: &[u8]) -> bool {
    let text = text.trim_ascii_end();
    let is_joined = memchr::memchr_iter(b';', text)
        .any(|at| at > 0 && text.get(at + 1).is_some_and(|next| !next.is_ascii_whitespace()));
    is_joined || ends_in_place(text)
}

/// Whether a line with `last` as its last word may be a phpspy frame: it has a depth and a line number, or a name and an absolute
/// path, or a location that is certainly one of a file.
fn is_frame(line: &[u8], last: &[u8]) -> bool {
    let has_path = || contains(split_first_word(line), b" /");
    (starts_with_depth(line) && (ends_in_line_number(last) || has_path())) || ends_in_place(line)
}

/// Whether a text ends like frames with an absolute path or without a file: `f /a.php:3`, `strlen <internal>:-1`.
fn ends_in_place(text: &[u8]) -> bool {
    let (rest, last) = split_last_word(text);
    !rest.is_empty() && ends_in_line_number(last) && matches!(last[0], b'/' | b'<' | b'[')
}

/// The text after the first word, which may be a number.
fn split_first_word(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii_start();
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    line[end..].trim_ascii_start()
}

/// Whether the first word is a number, as in a frame's line.
fn starts_with_depth(line: &[u8]) -> bool {
    let word = line.trim_ascii_start().split(u8::is_ascii_whitespace).next().unwrap_or_default();
    !word.is_empty() && word.iter().all(u8::is_ascii_digit)
}

/// Splits a line at its last white space, which stays with the first part: an empty stack consists only of it.
fn split_last_word(line: &[u8]) -> (&[u8], &[u8]) {
    let start = line.iter().rposition(u8::is_ascii_whitespace).map_or(0, |at| at + 1);
    line.split_at(start)
}

/// Whether a word is digits, optionally with a fraction, which some writers of folded stacks use.
fn is_number(word: &[u8]) -> bool {
    word.first().is_some_and(u8::is_ascii_digit)
        && word.last().is_some_and(u8::is_ascii_digit)
        && word.iter().all(|&byte| byte.is_ascii_digit() || byte == b'.')
}

/// Whether a word ends in a colon and a number, optionally followed by an opcode, and is not a time of day.
fn ends_in_line_number(word: &[u8]) -> bool {
    let word = match memchr::memmem::rfind(word, b":ZEND_") {
        Some(at) => &word[..at],
        None => word,
    };
    let Some(colon) = memchr::memrchr(b':', word) else { return false };
    let (file, number) = (&word[..colon], &word[colon + 1..]);
    let is_time = !file.is_empty() && file.iter().all(|byte| byte.is_ascii_digit() || *byte == b':');
    !is_time && is_number(number.strip_prefix(b"-").unwrap_or(number))
}

/// The lines of a text; the last one is left out if the prefix may end in the middle of it.
pub(super) fn lines(prefix: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = match memchr::memrchr(b'\n', prefix) {
        Some(at) if prefix.len() == DETECT_BYTES => &prefix[..at],
        _ => prefix,
    };
    whole.split(|&byte| byte == b'\n')
}

pub(super) fn trim_start(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start()
}

pub(super) fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    memchr::memmem::find(bytes, needle).is_some()
}
