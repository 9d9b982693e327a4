//! Where the code of native frames is: in which build of a file, and at which offset.

use borehole_model::{Frame, StatedModules, Tables};

/// The place of a frame's code in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FrameCode<'m> {
    /// The build ID, in hexadecimal.
    pub(crate) build_id: &'m str,
    /// The offset in the file; `None` for functions with a name in recordings, which state their distance from the symbol.
    pub(crate) file_offset: Option<i64>,
    /// The path of the file, if the offset is known; frames may state its last part only.
    pub(crate) path: Option<&'m str>,
    /// The name of a frame that has none but its offset: unlike that, it differs between files.
    pub(crate) name: Option<String>,
}

/// The digits of a build ID that names show.
const SHOWN_DIGITS: usize = 8;

impl<'m> FrameCode<'m> {
    /// The place of a frame in one of these files; `None` if its file is not among them, or has no build ID.
    pub(crate) fn of(frame: &Frame, modules: &'m StatedModules, tables: &Tables) -> Option<Self> {
        let native = frame.native?;
        let module = modules.of(native.module, tables).filter(|module| !module.build_id.is_empty())?;
        let build_id = module.build_id.as_str();
        // Importers put it behind the path of files that differ in nothing else.
        let path = module.path.strip_suffix(&*format!(" ({build_id})")).unwrap_or(&module.path);
        if let Some(offset) = native.file_offset {
            return Some(Self {
                build_id,
                file_offset: i64::try_from(offset).ok(),
                path: Some(path),
                name: None,
            });
        }
        let Some((_, offset)) = modules.address(frame, tables) else {
            return Some(Self { build_id, file_offset: None, path: None, name: None });
        };
        let name = native.offset.is_none().then(|| offset_name(path, build_id, offset));
        Some(Self { build_id, file_offset: i64::try_from(offset).ok(), path: Some(path), name })
    }
}

/// The name of code at an offset of a file.
fn offset_name(path: &str, build_id: &str, offset: u64) -> String {
    let shown = build_id.get(..SHOWN_DIGITS).unwrap_or(build_id);
    format!("{}@{shown}+{offset:#x}", last_part(path))
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a name only says where the code is: its function is unknown.
pub(crate) fn is_unnamed(name: &str, path: &str, build_id: &str, offset: u64) -> bool {
    let in_brackets = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    in_brackets == Some(last_part(path)) || name == offset_name(path, build_id, offset)
}
