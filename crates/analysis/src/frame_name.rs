//! The text that distinguishes frames.

use borehole_model::{Frame, Tables};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::json::LossyText;
use crate::path_map::PathMap;
use crate::query::{LineRows, OpcodeRows, Query};

/// The name of a frame in a table.
///
/// Its text is `function file:line [OPCODE]`, without the parts that the query ignores. Frames with equal texts are one row.
///
/// Serialized, `frame` is that text with the full path. All texts are UTF-8; absent parts have no key.
///
/// Source: reli 0.12, `rbt:analyze`: an unknown line is `-1`, or `0` for native code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FrameName {
    /// The full name of the function.
    pub function: Vec<u8>,
    /// The source file.
    pub file: Option<Vec<u8>>,
    /// The executing line, 1-based.
    pub line: Option<i64>,
    /// The executable or library, for frames of native code.
    pub module: Option<Vec<u8>>,
    /// The opcode of the virtual machine.
    pub opcode: Option<Vec<u8>>,
}

impl Serialize for FrameName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { function, file, line, module, opcode } = self;
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("frame", &LossyText(&self.text(PathStyle::Full)))?;
        object.serialize_entry("function", &LossyText(function))?;
        if let Some(line) = line {
            object.serialize_entry("line", line)?;
        }
        for (key, name) in [("file", file), ("module", module), ("opcode", opcode)] {
            if let Some(name) = name {
                object.serialize_entry(key, &LossyText(name))?;
            }
        }
        object.end()
    }
}

/// The form in which paths are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathStyle {
    /// The whole path.
    #[default]
    Full,
    /// The part after the last slash.
    Short,
}

impl FrameName {
    /// The text of the frame, which may be invalid UTF-8.
    #[must_use]
    pub fn text(&self, paths: PathStyle) -> Vec<u8> {
        let mut text = self.function.clone();
        self.push_place(paths, &mut text);
        if let Some(opcode) = &self.opcode {
            text.extend_from_slice(b" [");
            text.extend_from_slice(opcode);
            text.push(b']');
        }
        text
    }

    fn push_place(&self, paths: PathStyle, text: &mut Vec<u8>) {
        let path = self.file.as_deref().or(self.module.as_deref());
        if path.is_none() && self.line.is_none() {
            return;
        }
        text.push(b' ');
        text.extend_from_slice(match (path.unwrap_or_default(), paths) {
            (path, PathStyle::Full) => path,
            (path, PathStyle::Short) => base_name(path),
        });
        let unknown = if self.module.is_some() { 0 } else { -1 };
        text.extend_from_slice(format!(":{}", self.line.unwrap_or(unknown)).as_bytes());
    }

    /// Whether the frame belongs to Python's own profiler, which runs in the program that it profiles.
    ///
    /// Source: CPython 3.15.2, `profiling/sampling`, whose reports omit such frames.
    pub(crate) fn is_of_profiler(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.ends_with(PROFILER_FILE))
    }

    /// The parts that the query distinguishes.
    pub(crate) fn of(frame: &Frame, tables: &Tables, query: &Query) -> Self {
        // Frames of the profiler are recognized by their file, even if the query ignores files.
        let is_whole = query.lines == LineRows::Apart || is_of_profiler(frame, tables);
        let mut name = if is_whole {
            Self::whole(frame, tables, query)
        } else {
            Self { function: tables.string(frame.function).to_vec(), ..Self::default() }
        };
        if query.opcodes == OpcodeRows::Apart {
            name.opcode = frame.opcode.map(|id| tables.string(id).to_vec());
        }
        name
    }

    /// The function with its file and line.
    pub(crate) fn whole(frame: &Frame, tables: &Tables, query: &Query) -> Self {
        let path = |id| query.path_map.apply(tables.string(id)).into_owned();
        Self {
            function: tables.string(frame.function).to_vec(),
            file: frame.file.map(path),
            line: frame.line,
            module: frame.native.map(|native| path(native.module)),
            opcode: None,
        }
    }
}

/// The end of the path of Python's own profiler.
const PROFILER_FILE: &[u8] = b"_sync_coordinator.py";

/// Whether a frame belongs to Python's own profiler: see [`FrameName::is_of_profiler`].
pub(crate) fn is_of_profiler(frame: &Frame, tables: &Tables) -> bool {
    frame.file.is_some_and(|file| tables.string(file).ends_with(PROFILER_FILE))
}

/// The last component of a path, or the whole path if it has none.
fn base_name(path: &[u8]) -> &[u8] {
    let last = path.split(|&byte| byte == b'/').rfind(|component| !component.is_empty());
    last.unwrap_or(path)
}

/// The mapped path of a frame's source file, or of the library for native code.
pub(crate) fn file_of(frame: &Frame, tables: &Tables, map: &PathMap) -> Option<Vec<u8>> {
    let file = tables.string(frame.file.or(frame.native.map(|native| native.module))?);
    Some(map.apply(file).into_owned()).filter(|_| !file.is_empty())
}

/// The class of a frame with its namespace: from the source, or else the part of the function before the last `::`.
pub(crate) fn class_of(frame: &Frame, tables: &Tables) -> Option<Vec<u8>> {
    let Some(parts) = frame.parts else {
        let function = tables.string(frame.function);
        let end = function.windows(2).rposition(|pair| pair == b"::")?;
        return Some(function[..end].to_vec()).filter(|class| !class.is_empty());
    };
    let [namespace, class] = [parts.namespace, parts.class].map(|id| tables.string(id));
    match (namespace, class) {
        (_, b"") => None,
        (b"", class) => Some(class.to_vec()),
        (namespace, class) => Some([namespace, b"\\", class].concat()),
    }
}

/// The namespace of a frame: from the source, or else the part of the class or the function before its last `\\` or `::`, or
/// the library of native code.
pub(crate) fn namespace_of(frame: &Frame, tables: &Tables) -> Option<Vec<u8>> {
    if let Some(parts) = frame.parts {
        return Some(tables.string(parts.namespace).to_vec()).filter(|namespace| !namespace.is_empty());
    }
    let function = tables.string(frame.function);
    let class_end = function.windows(2).rposition(|pair| pair == b"::");
    let php = function[..class_end.unwrap_or(function.len())].iter().rposition(|&byte| byte == b'\\');
    let library = || frame.native.map(|native| tables.string(native.module).to_vec());
    match php.or(class_end) {
        Some(end) => Some(function[..end].to_vec()).filter(|namespace| !namespace.is_empty()),
        None => library().or_else(|| python_module(frame, tables)),
    }
}

/// The name of a Python module: that of its file without the extension.
fn python_module(frame: &Frame, tables: &Tables) -> Option<Vec<u8>> {
    let path = tables.string(frame.file?).strip_suffix(b".py")?;
    Some(base_name(path.strip_suffix(b"/__init__").unwrap_or(path)).to_vec())
}

#[cfg(test)]
mod tests {
    use borehole_model::{NameParts, NativeFrame};

    use super::*;

    fn name(file: Option<&str>, line: Option<i64>) -> FrameName {
        FrameName { function: b"f".to_vec(), file: file.map(Into::into), line, ..FrameName::default() }
    }

    fn text(name: &FrameName, paths: PathStyle) -> String {
        String::from_utf8(name.text(paths)).unwrap()
    }

    #[test]
    fn a_text_has_as_much_as_is_known() {
        assert_eq!(text(&name(Some("/a.php"), Some(3)), PathStyle::Full), "f /a.php:3");
        assert_eq!(text(&name(Some("<internal>"), None), PathStyle::Full), "f <internal>:-1");
        assert_eq!(text(&name(None, None), PathStyle::Full), "f");
        assert_eq!(text(&name(None, Some(3)), PathStyle::Full), "f :3");
        let opcode = FrameName { opcode: Some(b"ASSIGN".to_vec()), ..name(None, None) };
        assert_eq!(text(&opcode, PathStyle::Full), "f [ASSIGN]");
        let native = FrameName { module: Some(b"/lib/libc.so".to_vec()), ..name(None, None) };
        assert_eq!(text(&native, PathStyle::Short), "f libc.so:0");
    }

    #[test]
    fn a_short_path_is_its_last_component() {
        for (path, short) in [
            ("/var/www/a.php", "a.php"),
            ("/my dir/a b.php", "a b.php"),
            ("a.php", "a.php"),
            ("<internal>", "<internal>"),
            ("/dir/", "dir"),
            ("/", "/"),
            ("", ""),
        ] {
            assert_eq!(text(&name(Some(path), Some(1)), PathStyle::Short), format!("f {short}:1"));
        }
    }

    #[test]
    fn classes_come_from_the_parts_or_the_name() {
        let mut tables = Tables::default();
        let mut class = |function: &str, parts: Option<[&str; 2]>| {
            let function = tables.intern_string(function.as_bytes()).unwrap();
            let mut frame = Frame::named(function);
            frame.parts = parts.map(|parts| {
                let [namespace, class] = parts.map(|part| tables.intern_string(part.as_bytes()).unwrap());
                NameParts { namespace, class, method: function }
            });
            class_of(&frame, &tables).map(|class| String::from_utf8(class).unwrap())
        };
        assert_eq!(class(r"A\B::c", None).as_deref(), Some(r"A\B"));
        assert_eq!(class("A::{closure:B::c():1}", None).as_deref(), Some("A::{closure:B"));
        assert_eq!(class("main", None), None);
        assert_eq!(class("::b", None), None);
        assert_eq!(class(r"N\C::m", Some(["N", "C"])).as_deref(), Some(r"N\C"));
        assert_eq!(class("C::m", Some(["", "C"])).as_deref(), Some("C"));
        assert_eq!(class(r"N\f", Some(["N", ""])), None);
    }

    #[test]
    fn the_file_of_machine_code_is_its_module() {
        let mut tables = Tables::default();
        let [function, module, empty] =
            [b"f".as_slice(), b"libc.so", b""].map(|text| tables.intern_string(text).unwrap());
        let mut frame = Frame::named(function);
        assert_eq!(file_of(&frame, &tables, &PathMap::default()), None);
        frame.native = Some(NativeFrame { module, offset: Some(1), file_offset: None });
        assert_eq!(file_of(&frame, &tables, &PathMap::default()).as_deref(), Some(b"libc.so".as_slice()));
        frame.file = Some(empty);
        assert_eq!(file_of(&frame, &tables, &PathMap::default()), None);
    }
}
