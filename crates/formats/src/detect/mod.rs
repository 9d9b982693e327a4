//! Detection of an input's format by its first bytes, or by its name.
//!
//! The tests of the formats are in their folders. Detection knows all formats, even those that this build does not read.

mod foreign;
pub(crate) mod lines;
pub(crate) mod prefix;

pub use crate::Format;
use crate::registry::{Codec, Detect, Exporting, Facts, Import};

pub use foreign::{Foreign, foreign, foreign_by_name};

/// The number of bytes from the start of an input, after decompression, that [`detect`] can use.
pub const DETECT_BYTES: usize = 64 << 10;

/// Detects the format of an input by its content. `prefix` is the whole input, or its first [`DETECT_BYTES`], after
/// decompression.
///
/// # Examples
///
/// ```
/// use borehole_formats::detect::{Format, detect};
///
/// assert_eq!(detect(b"main;run;query 12\n"), Some(Format::Folded));
/// assert_eq!(detect(b"0 query /app/db.php:12\n1 <main> /app/index.php:3\n\n"), Some(Format::Phpspy));
/// assert_eq!(detect(b"no profile at all"), None);
/// ```
///
/// Words and a number, as in logs, are not folded stacks: there must be semicolons, or locations of frames.
///
/// ```
/// # use borehole_formats::detect::detect;
/// assert_eq!(detect(b"total 12\nerror 404\n"), None);
/// ```
#[must_use]
pub fn detect(prefix: &[u8]) -> Option<Format> {
    let prefix = &prefix[..prefix.len().min(DETECT_BYTES)];
    let signed = |detect| matches!(detect, Detect::Content(is_it) if is_it(prefix));
    let alike = |detect| matches!(detect, Detect::Lines(is_it) if is_it(prefix));
    let find = |fits: &dyn Fn(Detect) -> bool| Format::ALL.iter().find(|format| fits(format.facts().detect));
    find(&signed).or_else(|| find(&alike)).copied()
}

impl Detect {
    /// Whether `prefix`, the beginning of an input, looks like the format.
    fn is_it(self, prefix: &[u8]) -> bool {
        match self {
            Self::Never => false,
            Self::Content(is_it) | Self::Lines(is_it) => is_it(&prefix[..prefix.len().min(DETECT_BYTES)]),
        }
    }
}

impl Format {
    /// Whether an input that begins with `prefix` is of this format, and of none before it in [`Format::ALL`].
    #[must_use]
    pub fn is_detected(self, prefix: &[u8]) -> bool {
        match self {
            Self::Own(own) => own.facts.detect.is_it(prefix),
            _ => detect(prefix) == Some(self),
        }
    }

    /// Its short name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// The extensions of its files without the leading dot, the usual one first.
    #[must_use]
    pub const fn extensions(self) -> &'static [&'static str] {
        self.facts().extensions
    }

    /// A description in a few words.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        self.facts().description
    }

    /// Whether this build reads it.
    #[must_use]
    pub const fn readable(self) -> bool {
        matches!(self.codec(), Some(Codec { import: Some(_), .. }))
    }

    /// Whether this build writes it.
    #[must_use]
    pub const fn writable(self) -> bool {
        matches!(self.codec(), Some(Codec { export: Some(_), .. }))
    }

    /// Its importer; `None` if this build does not read it.
    #[must_use]
    pub fn importer(self) -> Option<Import> {
        self.codec()?.import
    }

    /// Its exporter; `None` if this build does not write it.
    #[must_use]
    pub fn exporter(self) -> Option<Exporting> {
        self.codec()?.export
    }

    /// The format with this name or alias, in any case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let is_named = |format: &Self| {
            let Facts { name: own, aliases, .. } = format.facts();
            aliases.iter().chain([own]).any(|known| known.eq_ignore_ascii_case(name))
        };
        Self::ALL.iter().copied().find(is_named)
    }

    /// The format of a path's extension, in any case, and whether `.gz` follows it.
    ///
    /// # Examples
    ///
    /// ```
    /// use borehole_formats::detect::Format;
    ///
    /// assert_eq!(Format::from_path("run/worker.RBT.gz"), Some((Format::Rbt, true)));
    /// assert_eq!(Format::from_path("callgrind.out.4711"), Some((Format::Callgrind, false)));
    /// assert_eq!(Format::from_path("notes.txt"), None);
    /// ```
    #[must_use]
    pub fn from_path(path: &str) -> Option<(Self, bool)> {
        let (name, compressed) = file_name(path);
        let found = Self::ALL.iter().find(|format| format.facts().is_name(&name));
        found.map(|&format| (format, compressed))
    }

    /// The formats that share the extension by which [`from_path`](Self::from_path) picks the format of `path`; only that one if
    /// none does.
    ///
    /// # Examples
    ///
    /// ```
    /// use borehole_formats::detect::Format;
    ///
    /// let formats = Format::sharing("run.bin");
    /// assert_eq!(formats, [Format::Tachyon, Format::Trc]);
    /// assert_eq!(Format::sharing("run.tachyon.jsonl"), [Format::TachyonJsonl]);
    /// ```
    #[must_use]
    pub fn sharing(path: &str) -> Vec<Self> {
        let (name, _) = file_name(path);
        let ending = |format: &Self| format.facts().ending(&name);
        let found = Self::ALL.iter().find_map(ending);
        Self::ALL.iter().copied().filter(|format| found.is_some() && ending(format) == found).collect()
    }

    /// The format of a file called `path` if the name alone decides it: some extensions belong to several formats, and to other
    /// programs.
    ///
    /// # Examples
    ///
    /// ```
    /// use borehole_formats::detect::Format;
    ///
    /// assert_eq!(Format::from_name_alone("run.tach.zst"), Some(Format::Tachyon));
    /// assert_eq!(Format::from_name_alone("run.bin"), None);
    /// ```
    #[must_use]
    pub fn from_name_alone(path: &str) -> Option<Self> {
        match Self::sharing(path.strip_suffix(".zst").unwrap_or(path))[..] {
            [format] => Some(format),
            _ => None,
        }
    }

    /// Whether a file of this format may be called `path`: some extensions belong to several formats.
    #[must_use]
    pub fn fits(self, path: &str) -> bool {
        self.facts().is_name(&file_name(path).0)
    }
}

impl Facts {
    fn is_name(&self, name: &str) -> bool {
        self.ending(name).is_some()
    }

    /// The extension of this format that a name has.
    fn ending(&self, name: &str) -> Option<&'static str> {
        self.extensions.iter().copied().find(|extension| has_extension(name, extension))
    }
}

/// The part of a file's name that decides its format, and whether the name says that the file is compressed.
fn file_name(path: &str) -> (String, bool) {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path).to_ascii_lowercase();
    let (name, compressed) = match name.strip_suffix(".gz") {
        Some(stem) => (stem, true),
        None => (name.as_str(), false),
    };
    (without_process_number(name).to_owned(), compressed)
}

/// Whether a name ends in `.extension`, or is `extension`, like `callgrind.out`.
fn has_extension(name: &str, extension: &str) -> bool {
    name.strip_suffix(extension).is_some_and(|stem| stem.is_empty() || stem.ends_with('.'))
}

/// `callgrind.out.4711` without the process id that Valgrind appends.
fn without_process_number(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((stem, end)) if stem.ends_with(".out") && end.bytes().all(|byte| byte.is_ascii_digit()) => stem,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_formats_share_a_name_or_an_extension() {
        let facts = || Format::ALL.iter().map(|format| format.facts());
        let mut names: Vec<_> = facts().flat_map(|facts| facts.aliases.iter().chain([&facts.name])).collect();
        // Only profiles of CPython and traces of dial9 share an extension; their content tells them apart.
        let shared = |extension: &&&str| **extension != "bin";
        let mut extensions: Vec<_> = facts().flat_map(|facts| facts.extensions).filter(shared).collect();
        for list in [&mut names, &mut extensions] {
            let count = list.len();
            list.sort();
            list.dedup();
            assert_eq!(list.len(), count);
        }
    }

    #[test]
    fn every_name_and_alias_is_understood_in_any_case() {
        for &format in Format::ALL {
            let facts = format.facts();
            for name in facts.aliases.iter().chain([&facts.name]) {
                assert_eq!(Format::from_name(&name.to_uppercase()), Some(format));
            }
            assert!(format.readable() || format.writable() || cfg!(not(feature = "rbt")));
        }
        assert_eq!(Format::from_name("xml"), None);
        assert_eq!(Format::from_name(""), None);
    }

    #[test]
    fn every_extension_is_understood_in_any_case_and_compressed() {
        for &format in Format::ALL {
            for extension in format.facts().extensions {
                let path = format!("/a.b/C.{extension}");
                let told = |path| Format::from_path(path).filter(|(found, _)| found.fits(path));
                let first = if *extension == "bin" { Format::Tachyon } else { format };
                assert_eq!(told(&path), Some((first, false)), "{path}");
                assert!(format.fits(&path), "{path}");
                let path = format!("x.{}.GZ", extension.to_uppercase());
                assert_eq!(told(&path), Some((first, true)), "{path}");
            }
        }
        for path in ["", "rbtx", "x.txt", "x.json", "x.gz", "a.rbt/x", "profile.out.1", "xrbt", "."] {
            assert_eq!(Format::from_path(path), None, "{path}");
        }
    }

    #[test]
    fn bytes_between_which_there_are_lines_are_no_text() {
        let lines = (0..100).map(|number| format!("main;order {number}\n")).collect::<String>();
        assert_eq!(detect(lines.as_bytes()), Some(Format::Folded));
        assert_eq!(detect(format!("class@anonymous\0/a.php;f 3\n{lines}").as_bytes()), Some(Format::Folded));
        assert_eq!(detect(format!("RMEM\x01\0\0\0\n{lines}").as_bytes()), None);
    }

    #[test]
    fn nothing_and_noise_are_no_format() {
        for bytes in
            [b"".as_slice(), b"\0\0\0\0", b"\xff\xfe", b"\n\n\n", b"{}", b"{\"type\":\"other\"}", b"hello"]
        {
            assert_eq!(detect(bytes), None, "{bytes:?}");
        }
    }
}
