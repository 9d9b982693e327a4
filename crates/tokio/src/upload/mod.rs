//! Copies completed files to a folder, to storage that understands S3, or into a lake, in the background.

mod queue;
mod target;

use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

use borehole_recorder::{Builder, Handle, Recorder, Settings, Source, SourceState};

use self::queue::UploadQueue;
use self::target::Target;

/// A place to which completed files are copied, and the budget for that.
///
/// Nothing waits for it: a file that does not fit the budget, or cannot be copied, is lost for that place, and counted in
/// the metadata of later files (`upload.lost_files`, `upload.lost_bytes`). It stays in the folder of the recording as long
/// as that has room.
///
/// # Examples
///
/// ```
/// use borehole_recorder::Recorder;
/// use borehole_tokio::Upload;
///
/// # let folder = borehole_testkit::Scratch::new();
/// let (traces, shared) = (folder.path("traces"), folder.path("shared"));
/// let upload = Upload::to(shared.to_str().unwrap())?.bytes_per_second(1 << 20);
/// let recorder = upload.start(Recorder::builder(traces).metadata("service", "shop"))?;
/// recorder.finish()?;
/// assert!(shared.join("service=shop").exists());
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Upload {
    target: Target,
    bytes_per_second: u64,
    pending_bytes: u64,
    patience: Duration,
}

impl Upload {
    /// Copies to a folder, or to a URL such as `s3://bucket/prefix` (feature `s3`). Access to S3 is set up by the usual
    /// variables: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, and `AWS_ENDPOINT` for other services.
    ///
    /// # Errors
    /// If the address is invalid, or the program is built without support for it.
    pub fn to(address: &str) -> io::Result<Self> {
        let variables = std::env::vars().filter(|(name, _)| name.starts_with("AWS_"));
        Self::with_options(address, variables)
    }

    /// Copies to an address with the given options, such as `aws_endpoint`, instead of the variables.
    ///
    /// # Errors
    /// Like [`Upload::to`], and if an option is invalid.
    pub fn with_options(
        address: &str,
        options: impl IntoIterator<Item = (String, String)>,
    ) -> io::Result<Self> {
        Ok(Self::new(Target::storage(address, options)?))
    }

    /// Adds files to a lake, with the program `borehole-lake` on the path. The service and the machine are those of the
    /// files.
    #[must_use]
    pub fn to_lake(lake: &str) -> Self {
        Self::new(Target::Lake { program: "borehole-lake".into(), lake: lake.into() })
    }

    fn new(target: Target) -> Self {
        let Settings { upload_bytes_per_second, upload_pending_bytes, .. } = Settings::default();
        Self {
            target,
            bytes_per_second: upload_bytes_per_second,
            pending_bytes: upload_pending_bytes,
            patience: Duration::from_secs(5),
        }
    }

    /// Sets the average speed. Default: 4 MiB a second.
    #[must_use]
    pub fn bytes_per_second(mut self, bytes: u64) -> Self {
        self.bytes_per_second = bytes.max(1);
        self
    }

    /// Sets the size of all files that may wait; others are lost for the place. Default: 256 MiB.
    #[must_use]
    pub fn pending_bytes(mut self, bytes: u64) -> Self {
        self.pending_bytes = bytes;
        self
    }

    /// Sets the time that the end of the recording waits for files that are not copied yet. Until then, the speed is not
    /// limited. Default: 5 s.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Begins to record, with copies of the completed files.
    ///
    /// # Errors
    /// Like [`Builder::start`].
    pub fn start(self, builder: Builder) -> io::Result<Recorder> {
        let queue = Arc::new(UploadQueue::new(self.bytes_per_second, self.pending_bytes));
        let builder = self.attach(builder, &queue)?;
        let recorder = builder.start()?;
        recorder.handle().add_source(Box::new(UploadSource(queue)))?;
        Ok(recorder)
    }

    fn attach(self, builder: Builder, queue: &Arc<UploadQueue>) -> io::Result<Builder> {
        let (working, target) = (Arc::clone(queue), self.target);
        let work = move || target.copy_all(&working);
        thread::Builder::new().name("borehole-upload".to_owned()).spawn(work)?;
        let (arriving, ending, patience) = (Arc::clone(queue), Arc::clone(queue), self.patience);
        Ok(builder.on_complete(move |path| arriving.push(path)).on_finish(move || ending.finish(patience)))
    }
}

/// Begins to record with the places of the settings, if there are any.
pub(crate) fn start(settings: Settings) -> io::Result<Recorder> {
    let upload = match (&settings.upload, &settings.lake) {
        (None, None) => return settings.builder.start(),
        (Some(address), None) => Upload::to(address)?,
        (None, Some(lake)) => Upload::to_lake(lake),
        (Some(_), Some(_)) => {
            let message = "expected either BOREHOLE_TRACE_UPLOAD or BOREHOLE_TRACE_LAKE, found both";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
    };
    let upload = upload
        .bytes_per_second(settings.upload_bytes_per_second)
        .pending_bytes(settings.upload_pending_bytes);
    upload.start(settings.builder)
}

/// States what was copied and lost in the metadata.
struct UploadSource(Arc<UploadQueue>);

impl Source for UploadSource {
    fn name(&self) -> &'static str {
        "upload"
    }

    fn interval(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn sample(&mut self, handle: &Handle) -> SourceState {
        let counts = self.0.counts();
        let facts = [
            ("upload.files", counts.files),
            ("upload.bytes", counts.bytes),
            ("upload.lost_files", counts.lost_files),
            ("upload.lost_bytes", counts.lost_bytes),
        ];
        for (key, count) in facts {
            if count > 0 {
                handle.set_metadata(key, &count.to_string());
            }
        }
        SourceState::Continues
    }
}
