//! The place of a lake: a folder, or a prefix in an object store.

use std::ops::Range;
use std::path::{Component, Path as FilePath, PathBuf};
use std::sync::Arc;
use std::{error, fmt, io, iter};

use borehole_text::{cause, shell_word, without_passwords};
use bytes::Bytes;
use futures::TryStreamExt as _;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload};
use sha2::{Digest as _, Sha256};
use url::Url;

use crate::Error;
use crate::checksum::hex;
use crate::settings::{Cloud, StoreSettings};

/// Encoded names that exceed this length are cut. File systems limit a path component to 255 bytes, `service=` included.
const LONGEST_NAME: usize = 200;

/// An object store, and the place of a lake in it.
#[derive(Clone)]
pub(crate) struct LakePlace {
    store: Arc<dyn ObjectStore>,
    /// Scheme and host, by which an engine knows the store.
    root: Url,
    base: Path,
    /// The name for messages, without a password.
    name: String,
    /// The cloud whose metadata service is asked for credentials.
    asked: Option<Cloud>,
}

impl LakePlace {
    /// Parses `name`: the path of a folder, or an address such as `s3://bucket/lake`.
    ///
    /// Credentials and endpoints come from the environment variables that the clouds' own tools use. If there are no
    /// credentials, the cloud's metadata service is asked for some, as those tools do.
    pub(crate) fn parse(name: &str) -> Result<Self, Error> {
        match Url::parse(name) {
            Ok(url) if name.contains("://") && url.scheme() != "file" => Self::remote(name, &url),
            Ok(url) if url.scheme() == "file" => {
                let path = url
                    .to_file_path()
                    .map_err(|()| Error::missing(format!("{name}: expected the path of a folder")))?;
                Self::local(name, &path)
            }
            _ => Self::local(name, FilePath::new(name)),
        }
    }

    fn local(name: &str, path: &FilePath) -> Result<Self, Error> {
        let path = resolved(path).map_err(|error| Error::storage(&name, &cause(&error)))?;
        refuse_file(name, &path)?;
        let base = Path::from_absolute_path(&path).map_err(|error| Error::storage(&name, &error))?;
        let root = Url::parse("file:///").expect("an address");
        Ok(Self { store: Arc::new(LocalFileSystem::new()), root, base, name: name.to_owned(), asked: None })
    }

    fn remote(name: &str, url: &Url) -> Result<Self, Error> {
        let OpenedStore { store, base, asked } = opened(url)?;
        let root = without_passwords(&url[..url::Position::BeforePath]);
        let root = Url::parse(&root).map_err(|error| Error::storage(&root, &error))?;
        Ok(Self { store, root, base, name: without_passwords(name).into_owned(), asked })
    }

    /// A place in the store of a test.
    #[cfg(test)]
    pub(crate) fn of_store(store: Arc<dyn ObjectStore>) -> Self {
        let root = Url::parse("test://store").expect("an address");
        Self { store, root, base: Path::from("lake"), name: "test://store/lake".to_owned(), asked: None }
    }

    pub(crate) fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// Whether it is a folder. A failed request to a folder has no effect, now or later.
    pub(crate) fn is_folder(&self) -> bool {
        self.root.scheme() == "file"
    }

    pub(crate) const fn root(&self) -> &Url {
        &self.root
    }

    /// The name of an object of the lake in its store.
    pub(crate) fn path(&self, relative: &str) -> Path {
        // Both consist of components that are encoded already.
        let whole = [self.base.as_ref(), relative].join("/");
        Path::parse(&whole).unwrap_or_else(|_| Path::from(whole))
    }

    /// The whole path or address of an object, as other programs know it.
    pub(crate) fn address(&self, relative: &str) -> String {
        let path = self.path(relative);
        if self.is_folder() { format!("/{path}") } else { format!("{}{path}", self.root) }
    }

    pub(crate) async fn get(&self, relative: &str) -> Result<Option<Vec<u8>>, Error> {
        let bytes = match self.store.get(&self.path(relative)).await {
            Ok(object) => object.bytes().await,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => Err(error),
        };
        Ok(Some(bytes.map_err(|error| self.error(relative, &error))?.to_vec()))
    }

    /// Parts of an object, which may have been deleted meanwhile ([`Error::is_vanished`]).
    pub(crate) async fn get_ranges(
        &self,
        relative: &str,
        ranges: &[Range<u64>],
    ) -> Result<Vec<Bytes>, Error> {
        match self.store.get_ranges(&self.path(relative), ranges).await {
            Ok(parts) => Ok(parts),
            Err(error @ object_store::Error::NotFound { .. }) => Err(self.error(relative, &error).vanished()),
            Err(error) => Err(self.error(relative, &error)),
        }
    }

    /// Creates an object; `false` if one of this name exists.
    pub(crate) async fn create(&self, relative: &str, bytes: Vec<u8>) -> Result<bool, Error> {
        let options = PutOptions::from(PutMode::Create);
        match self.store.put_opts(&self.path(relative), PutPayload::from(bytes), options).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
                Ok(false)
            }
            Err(error) => Err(self.error(relative, &error)),
        }
    }

    pub(crate) async fn delete(&self, relative: &str) -> Result<(), Error> {
        match self.store.delete(&self.path(relative)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.error(relative, &error)),
        }
    }

    /// The objects below `folder` whose names come after `after`, in the order of their names.
    pub(crate) async fn list(&self, folder: &str, after: Option<&str>) -> Result<Vec<ListedObject>, Error> {
        let prefix = self.path(folder);
        let objects = match after {
            Some(after) => self.store.list_with_offset(Some(&prefix), &self.path(after)),
            None => self.store.list(Some(&prefix)),
        };
        let objects: Vec<ObjectMeta> = match objects.try_collect().await {
            Ok(objects) => objects,
            Err(object_store::Error::NotFound { .. }) => Vec::new(),
            Err(error) => return Err(self.error(folder, &error)),
        };
        let relative = |object: ObjectMeta| {
            let parts = object.location.prefix_match(&self.base)?;
            let path = parts.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("/");
            Some(ListedObject { path, bytes: object.size, modified_unix_s: object.last_modified.timestamp() })
        };
        let mut listed: Vec<_> = objects.into_iter().filter_map(relative).collect();
        listed.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(listed)
    }

    pub(crate) fn error(&self, relative: &str, error: &(dyn error::Error + 'static)) -> Error {
        let place = format!("{}/{relative}", self.name);
        // For a folder, the operating system names the problem; the store only names its own call.
        let causes = iter::successors(Some(error), |error| error.source());
        let of_system = causes.filter_map(|error| error.downcast_ref::<io::Error>()).last();
        let failure = match of_system.filter(|_| self.is_folder()) {
            Some(error) => Error::storage(&place, &cause(error)),
            None => Error::storage(&place, &error),
        };
        match self.asked {
            Some(cloud) => failure.with_hint(format!(
                "no credentials are set, so the metadata service of this machine was asked for some; expected {}",
                cloud.usual()
            )),
            None => failure,
        }
    }
}

/// Refuses files and paths below a file, for which the store reports only that it cannot walk them.
fn refuse_file(name: &str, path: &FilePath) -> Result<(), Error> {
    let there = path.ancestors().find(|above| above.exists());
    let Some(file) = there.filter(|there| !there.is_dir()) else { return Ok(()) };
    let above = file.display().to_string();
    let (found, file) =
        if file == path { ("a file".to_owned(), name) } else { (format!("the file {above}"), &*above) };
    let error = Error::missing(format!("{name}: expected a lake folder, found {found}"));
    Err(error.with_hint(format!("run borehole lake add LAKE {} to add it to a lake", shell_word(file))))
}

/// A path from the root without `..`, which stores do not support.
fn resolved(path: &FilePath) -> io::Result<PathBuf> {
    let mut resolved = PathBuf::new();
    for component in std::path::absolute(path)?.components() {
        if component != Component::ParentDir {
            resolved.push(component);
            continue;
        }
        // The folder above a link is the one above its target.
        match resolved.canonicalize() {
            Ok(folder) => resolved = folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        resolved.pop();
    }
    Ok(resolved)
}

/// An object of a lake.
pub(crate) struct ListedObject {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    modified_unix_s: i64,
}

impl ListedObject {
    /// The time of its last modification, in microseconds since 1970 (UTC).
    pub(crate) const fn modified_us(&self) -> i64 {
        self.modified_unix_s.saturating_mul(1_000_000)
    }
}

/// The store at an address, and the path in the address.
#[cfg(feature = "cluster")]
pub(crate) fn open_store(url: &Url) -> Result<(Arc<dyn ObjectStore>, Path), Error> {
    opened(url).map(|OpenedStore { store, base, .. }| (store, base))
}

/// The store at an address.
struct OpenedStore {
    store: Arc<dyn ObjectStore>,
    /// The path in the address.
    base: Path,
    /// The cloud whose metadata service is asked for credentials.
    asked: Option<Cloud>,
}

fn opened(url: &Url) -> Result<OpenedStore, Error> {
    let cloud = Cloud::of(url.scheme(), url.host_str().unwrap_or_default());
    let settings = cloud.map(|cloud| StoreSettings::of(cloud, std::env::vars_os())).transpose();
    let StoreSettings { values, asked } =
        settings.map_err(|why| Error::storage(&without_passwords(url.as_str()), &why))?.unwrap_or_default();
    let parsed = object_store::parse_url_opts(url, values);
    let (store, base) = parsed.map_err(|error| {
        let built = "this build supports folders".to_owned()
            + if cfg!(feature = "s3") { ", s3://" } else { "" }
            + if cfg!(feature = "gcs") { ", gs://" } else { "" }
            + if cfg!(feature = "azure") { ", az://" } else { "" };
        Error::storage(&without_passwords(url.as_str()), &error).with_hint(built)
    })?;
    Ok(OpenedStore { store: Arc::from(store), base, asked })
}

impl fmt::Display for LakePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for LakePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LakePlace({})", self.name)
    }
}

/// Encodes a name as a path component that has no special meaning for stores, shells and tools.
///
/// Letters, digits, `_`, `-` and dots after the first character stay; every other byte becomes `%` and two hexadecimal digits.
/// A name that gets too long becomes its beginning, `-` and half of its SHA-256. The result is longer than any uncut name, so
/// no other name has it.
pub(crate) fn encoded(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for (place, byte) in name.bytes().enumerate() {
        if text.len() > LONGEST_NAME {
            let sum = Sha256::digest(name);
            return format!("{text}-{}", hex(&sum[..16]));
        }
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => text.push(char::from(byte)),
            b'.' if place > 0 => text.push('.'),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_names_cannot_leave_their_folder() {
        let names = ["web", "../x", "a=b", "über", ".", "a/b", "v1.2", ""];
        let texts = names.map(encoded);
        assert_eq!(texts, ["web", "%2E.%2Fx", "a%3Db", "%C3%BCber", "%2E", "a%2Fb", "v1.2", ""]);
    }

    #[test]
    fn long_service_names_are_cut_and_stay_distinct() {
        let whole = "x".repeat(LONGEST_NAME + 1);
        assert_eq!(encoded(&whole), whole);
        let long = "\u{8a08}".repeat(30);
        let [one, other] = [format!("{long}1"), format!("{long}2")].map(|name| encoded(&name));
        assert!(one.len() < 240 && one.starts_with("%E8%A8%88") && one != other, "{one} {other}");
        assert!(one.len() > LONGEST_NAME + 3, "{one}");
    }

    #[test]
    fn parent_components_are_resolved_through_links() {
        let scratch = borehole_testkit::Scratch::new();
        let [folder, elsewhere] = ["folder", "elsewhere/deep"].map(|name| scratch.path(name));
        std::fs::create_dir(&folder).unwrap();
        std::fs::create_dir_all(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, folder.join("link")).unwrap();
        let path = |relative: &str| resolved(&folder.join(relative)).unwrap();
        let real = scratch.folder().canonicalize().unwrap();
        assert_eq!(path("../lake"), real.join("lake"));
        assert_eq!(
            path("link/../lake"),
            real.join("elsewhere/lake"),
            "`..` after a link leads to the folder above its target"
        );
        assert_eq!(path("nothing/../lake"), folder.join("lake"));
        assert_eq!(path("link/lake"), folder.join("link/lake"), "links without `..` stay as they are");
        assert_eq!(resolved(FilePath::new("/../../lake")).unwrap(), FilePath::new("/lake"));
    }

    #[test]
    fn object_paths_are_below_the_lake() {
        let place = LakePlace::parse("/tmp/some lake").unwrap();
        let path = place.path(&format!("samples/service={}/x.parquet", encoded("../x")));
        assert_eq!(path.as_ref(), "tmp/some lake/samples/service=%2E.%2Fx/x.parquet");
    }
}
