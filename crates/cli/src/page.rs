//! HTML pages of profiles: `borehole report -o report.html`, `borehole open`.

use std::env;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use borehole::model::{ProfileSink, Sampled, Tables, Tee};
use borehole::{Compression, Error, Existing, Output, Recovery};
use borehole_analysis::tokio::{TokioPage, TokioPageSink};
use borehole_analysis::{
    HeatMapSink, LaneRunsSink, PageLimits, ProfileBuilder, ProfilePage, SampleSelection,
};
use clap::Args;

use crate::exit::Exit;
use crate::filter::{FilterArgs, SampleArgs, ShapeArgs, ValueArgs, check_value};
use crate::inputs::Inputs;
use crate::report::TableArgs;
use crate::{external, interrupt, messages, outputs};

/// The options for a page.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PageArgs {
    /// Write an interactive page (.html) instead of text
    #[arg(short, long, value_name = "OUTPUT", conflicts_with_all = ["json", "top", "limit", "all"], conflicts_with_all = TableArgs::ids())]
    pub(crate) output: Option<PathBuf>,

    /// Title of the page [default: the names of the inputs]
    #[arg(long, value_name = "TEXT", requires = "output")]
    pub(crate) title: Option<String>,

    /// Replace the output if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,

    /// Show a timeline of samples per thread instead of tables
    #[arg(long, conflicts_with = "output", conflicts_with_all = TableArgs::ids())]
    pub(crate) timeline: bool,

    /// Show a heat map of when samples were taken: one column per second, from bottom to top
    #[arg(long, conflicts_with = "output", conflicts_with_all = TableArgs::ids())]
    pub(crate) heatmap: bool,
}

/// The arguments of `borehole open`.
#[derive(Args, Clone, Debug)]
pub(crate) struct OpenArgs {
    #[command(flatten)]
    inputs: Inputs,

    /// Print the address of the page without opening it
    #[arg(long)]
    no_browser: bool,

    /// Show several inputs together on one page. Without this, and without options that choose samples, borehole serve
    /// shows them one by one where it is installed
    #[arg(long)]
    merge: bool,

    #[command(flatten)]
    value: ValueArgs,

    #[command(flatten)]
    filter: FilterArgs,
}

/// Writes the page of `inputs` to the file called `path`.
pub(crate) fn write(
    args: &PageArgs,
    inputs: &Inputs,
    (samples, shape, value): (&SampleArgs, &ShapeArgs, &ValueArgs),
    path: &Path,
) -> anyhow::Result<Exit> {
    if !path.to_string_lossy().to_ascii_lowercase().ends_with(".html") {
        bail!(
            "unsupported output: expected a name that ends in .html, found {}; use convert for other formats",
            path.display()
        );
    }
    let existing = Existing::replacing(args.force);
    Output::check(path, existing)?;
    let (html, recovery) = html(inputs, (&samples.alone(), shape, value), args.title.as_deref())?;
    outputs::complete(Output::create(path, existing, Compression::None)?, &html)?;
    messages::interrupted(recovery.samples);
    Ok(Exit::after(&recovery))
}

/// `borehole open`.
pub(crate) fn open(args: &OpenArgs) -> anyhow::Result<Exit> {
    if args.is_to_choose_from() {
        match external::path(&external::SERVE) {
            Ok(_) => return external::run(&external::SERVE, &served(args)),
            Err(error) => messages::say(&format!("note: all inputs are on one page; {error:#}")),
        }
    }
    interrupt::heed();
    let (html, recovery) = html(&args.inputs, (&args.filter, &ShapeArgs::default(), &args.value), None)?;
    let address = address(&temporary(&html)?);
    messages::out(&address)?;
    if !args.no_browser {
        browse(&address)?;
    }
    Ok(Exit::after(&recovery))
}

impl OpenArgs {
    /// Whether there are several inputs, and nothing says that they belong together.
    fn is_to_choose_from(&self) -> bool {
        let Self { inputs, merge, value, filter, .. } = self;
        let is_plain = !merge
            && *value == ValueArgs::default()
            && *filter == FilterArgs::default()
            && inputs.reading.is_plain();
        let are_there = inputs.paths.iter().all(|path| path.exists());
        is_plain && are_there && (inputs.paths.len() > 1 || inputs.paths.iter().any(|path| path.is_dir()))
    }
}

/// The arguments for serving the inputs.
fn served(args: &OpenArgs) -> Vec<OsString> {
    let open = (!args.no_browser).then_some("--open");
    let words = ["serve"].into_iter().chain(open).chain(["--"]).map(OsString::from);
    words.chain(args.inputs.paths.iter().map(OsString::from)).collect()
}

/// Writes a page that only the user can read to the temporary directory. Its name is random, so that nobody can place a link to
/// one of the user's files there.
fn temporary(html: &str) -> Result<PathBuf, Error> {
    let failure = |path: &Path, source| Error::Write { name: path.display().to_string(), source };
    let folder = env::temp_dir();
    let created = tempfile::Builder::new().prefix("borehole-").suffix(".html").tempfile_in(&folder);
    let mut page = created.map_err(|source| failure(&folder, source))?;
    interrupt::unfinished(Some(page.path()));
    page.as_file_mut().write_all(html.as_bytes()).map_err(|source| failure(page.path(), source))?;
    let (_, path) = page.keep().map_err(|refused| failure(refused.file.path(), refused.error))?;
    interrupt::unfinished(None);
    Ok(path)
}

fn html(
    inputs: &Inputs,
    (filter, shape, value): (&FilterArgs, &ShapeArgs, &ValueArgs),
    title: Option<&str>,
) -> anyhow::Result<(String, Recovery)> {
    let names = title.map_or_else(|| name_of(inputs), str::to_owned);
    let read =
        |tables: &mut Tables, sink: &mut dyn ProfileSink| inputs.read_onto(tables, filter, sink, "the page");
    // Who chooses among the samples wants to see those.
    if inputs.reading.kind.is_some() || value.value.is_some() || shape.is_asked() {
        let (sink, tables, recovery) = shape.reading(timed(value), read)?;
        return Ok((profile_html(sink, tables, &names)?, recovery));
    }
    let (sink, tables, recovery) = shape.reading(Tee::new(timed(value), TokioPageSink::default()), read)?;
    let (profile, tokio) = sink.into_parts();
    let programs: Vec<TokioPage> = tokio.into_pages();
    let html = match &programs[..] {
        [] => profile_html(profile, tables, &names)?,
        programs => borehole_web::tokio_html(programs, &names),
    };
    Ok((html, recovery))
}

/// A profile and a heat map, and what each thread did over time.
type TimedProfile = Tee<Tee<ProfileBuilder, HeatMapSink>, LaneRunsSink>;

fn timed(value: &ValueArgs) -> TimedProfile {
    Tee::new(value.profile(), LaneRunsSink::new(value.weigher(Sampled::Count)))
}

fn profile_html(sink: TimedProfile, tables: Tables, names: &str) -> anyhow::Result<String> {
    let (profile, lanes) = sink.into_parts();
    let (builder, heat) = profile.into_parts();
    check_value(builder.weigher())?;
    let (profile, runs) = (builder.into_profile(tables), lanes.into_runs());
    let page = ProfilePage::new(&profile, PageLimits::default())?;
    let chart = || runs.chart(&profile, &SampleSelection::default(), borehole_web::PAGE_CHART);
    let chart = (runs.count() > 0).then(chart);
    Ok(borehole_web::report_html(&page, &heat.into_view(), chart.as_ref(), names))
}

/// The title of a page of `inputs`.
pub(crate) fn name_of(inputs: &Inputs) -> String {
    let names: Vec<_> =
        inputs.names().map(|name| name.file_name().unwrap_or(name.as_os_str()).to_string_lossy()).collect();
    match &names[..] {
        [only] if *only == "-" => "standard input".to_owned(),
        [first, _, _, ..] => format!("{first} and {} others", names.len() - 1),
        _ => names.join(", "),
    }
}

/// The `file:` URL of a path.
fn address(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes();
    let mut address = "file://".to_owned();
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            address.push(char::from(byte));
        } else {
            address += &format!("%{byte:02X}");
        }
    }
    address
}

/// Opens an address with the program that `BROWSER` names, or with the desktop's default.
pub(crate) fn browse(address: &str) -> anyhow::Result<()> {
    let named = env::var("BROWSER").ok().filter(|browser| !browser.is_empty());
    let browser = named.as_deref().unwrap_or("xdg-open");
    let mut command = Command::new(browser);
    command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = command.spawn();
    started.with_context(|| format!("cannot start {browser}; use --no-browser to only print the address"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_spell_out_what_is_not_plain() {
        assert_eq!(address(Path::new("/tmp/a b#?é.html")), "file:///tmp/a%20b%23%3F%C3%A9.html");
    }
}
