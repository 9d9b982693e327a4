//! The members of tar archives.

use std::io::{self, Read};

use tar::{EntryType, PaxExtensions};

use super::unpacking::{MAX_NAME_BYTES, Unpacking};
use crate::Error;

/// The longest description of a member, in bytes. Those of real archives have a name, times and owners.
const MAX_PAX_BYTES: usize = 64 << 10;

/// Unpacks the profiles of an archive. Links, folders and devices are passed over.
///
/// Long names are joined to their members here, because the crate reads them without a limit.
pub(super) fn unpack(input: impl Read, unpacking: &mut Unpacking<'_>) -> Result<(), Error> {
    let mut archive = tar::Archive::new(input);
    let mut entries = archive.entries().map_err(|error| unpacking.unreadable(error))?.raw(true);
    let mut long_name = None;
    loop {
        let mut entry = match entries.next() {
            Some(Ok(entry)) => entry,
            Some(Err(fault)) => return unpacking.ends_early(&fault),
            None => return Ok(()),
        };
        let size_bytes = entry.size();
        match entry.header().entry_type() {
            EntryType::GNULongName => {
                let name = described(&mut entry, MAX_NAME_BYTES + 1, unpacking)?;
                long_name = Some(text(name.split(|&byte| byte == 0).next().unwrap_or_default()));
            }
            EntryType::XHeader => {
                let description = described(&mut entry, MAX_PAX_BYTES, unpacking)?;
                long_name = pax_name(&description, unpacking)?.or(long_name);
            }
            kind => {
                let name = long_name.take().unwrap_or_else(|| text(&entry.path_bytes()));
                let is_whole = match kind {
                    EntryType::Regular | EntryType::Continuous => {
                        unpacking.member(&name, Some(size_bytes), &mut entry)?
                    }
                    EntryType::GNUSparse => {
                        unpacking.skip(&name, "sparse members are not unpacked");
                        true
                    }
                    _ => true,
                };
                if !is_whole {
                    return Ok(());
                }
            }
        }
    }
}

/// The content of an entry that describes the next one.
fn described(entry: &mut impl Read, most_bytes: usize, unpacking: &Unpacking<'_>) -> Result<Vec<u8>, Error> {
    let mut content = Vec::new();
    let read: io::Result<usize> = entry.take(most_bytes as u64 + 1).read_to_end(&mut content);
    read.map_err(|error| unpacking.unreadable(error))?;
    if content.len() > most_bytes {
        let message =
            format!("too large: expected the description of a member of at most {most_bytes} bytes");
        return Err(unpacking.too_large(message));
    }
    Ok(content)
}

/// The name that an extended header gives to the next member.
fn pax_name(description: &[u8], unpacking: &Unpacking<'_>) -> Result<Option<String>, Error> {
    let mut name = None;
    for extension in PaxExtensions::new(description).flatten() {
        match extension.key_bytes() {
            b"path" => name = Some(text(extension.value_bytes())),
            // Only sizes that the plain header cannot hold are written there.
            b"size" => {
                let message = "too large: expected members of less than 8 GiB".to_owned();
                return Err(unpacking.too_large(message));
            }
            _ => {}
        }
    }
    Ok(name)
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}
