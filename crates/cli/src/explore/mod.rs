//! `borehole explore`: a profile, or a trace of a Tokio program, in the terminal.

mod diagnose;
mod follow;
pub(crate) mod host;
pub(crate) mod terminal;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use borehole::model::{Tables, Tee};
use borehole::{Error, ProfileSink, Recovery};
use borehole_analysis::diff::{DiffQuery, DiffSink, DiffView};
use borehole_analysis::tokio::{TokioPage, TokioPageSink};
use borehole_analysis::{HeatMap, Profile, ReshapeSink};
use borehole_tui::{
    App, Bindings, Colours, Explorer, ExplorerAction, Settings, TerminalInput, TokioApp, TokioSettings,
};
use clap::Args;

use crate::exit::Exit;
use crate::filter::{self, FilterArgs, SampleArgs, ShapeArgs, StackShapeArgs, ValueArgs, check_value};
use crate::inputs::{Inputs, ReadArgs};
use crate::interrupt;
use crate::messages;
use follow::FollowedFiles;
use host::ExplorerHost;
use terminal::{Mouse, Terminal};

/// The options of `borehole explore`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ExploreArgs {
    /// Files to read, merged; `-` is standard input
    #[arg(value_name = "FILE", required_unless_present = "diagnose")]
    pub(crate) paths: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) reading: ReadArgs,

    /// Keymap: a JSON object of actions with lists of byte sequences; other actions keep their keys
    #[arg(long, value_name = "FILE")]
    pub(crate) keymap: Option<String>,

    /// Update the view as the file grows
    #[arg(long)]
    pub(crate) follow: bool,

    /// Leave the mouse to the terminal, for selecting text
    #[arg(long)]
    pub(crate) no_mouse: bool,

    /// Print the bytes that keys send, for writing a keymap; q quits
    #[arg(long)]
    pub(crate) diagnose: bool,

    /// Compare with this earlier profile (D shows the changes)
    #[arg(long, alias = "base", value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) value: ValueArgs,

    #[command(flatten)]
    pub(crate) samples: SampleArgs,

    #[command(flatten)]
    pub(crate) shape: ShapeArgs,
}

impl ExploreArgs {
    fn title(&self) -> String {
        self.paths.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>().join(" + ")
    }

    /// The settings of the explorer of profiles. The keys that the user has set are those of the explorer that opens.
    fn settings(&self, opens: bool) -> anyhow::Result<Settings> {
        Ok(Settings {
            title: self.title(),
            keymap: keymap(self.keymap.as_deref().filter(|_| opens))?,
            colours: colours(),
            query: self.shape.query()?,
            libraries: filter::libraries()?,
            diff: self.diff()?,
            ..Settings::default()
        })
    }

    fn tokio_settings(&self, has_samples: bool) -> anyhow::Result<TokioSettings> {
        let keymap = keymap(self.keymap.as_deref())?;
        Ok(TokioSettings { title: self.title(), keymap, colours: colours(), has_samples })
    }

    fn read(&self) -> anyhow::Result<Explored> {
        let mut tables = Tables::default();
        let mut profile = self.value.profile();
        let mut programs = Vec::new();
        let recovery = if self.wants_samples() {
            self.read_into(&mut tables, &mut profile)?
        } else {
            let mut sink = Tee::new(profile, TokioPageSink::default());
            let recovery = self.read_into(&mut tables, &mut sink)?;
            let (samples, tokio) = sink.into_parts();
            (profile, programs) = (samples, tokio.into_pages());
            recovery
        };
        let (builder, heat) = profile.into_parts();
        if programs.is_empty() {
            check_value(builder.weigher())?;
        }
        Ok(Explored { profile: builder.into_profile(tables), heat: heat.into_view(), programs, recovery })
    }

    fn read_into(&self, tables: &mut Tables, sink: &mut dyn ProfileSink) -> anyhow::Result<Recovery> {
        let inputs = self.inputs(self.paths.clone());
        let recovery = inputs.read_onto(tables, &self.samples.alone(), sink, "")?;
        sink.finish(tables)?;
        Ok(recovery)
    }

    /// Whether the user chooses among the samples of a trace, and so wants to see those.
    fn wants_samples(&self) -> bool {
        let is_chosen = self.reading.kind.is_some() || self.value.value.is_some();
        is_chosen || self.shape.is_asked() || self.baseline.is_some()
    }

    /// Refuses a pipe if there is a baseline, because the inputs are read a second time for the comparison.
    fn check(&self) -> anyhow::Result<()> {
        let is_pipe = |path: &&PathBuf| path.as_path() == Path::new("-") || path.exists() && !path.is_file();
        match self.paths.iter().find(is_pipe).filter(|_| self.baseline.is_some()) {
            Some(pipe) => bail!(
                "{}: unsupported input: expected a file, because --baseline reads it twice",
                pipe.display()
            ),
            None => Ok(()),
        }
    }

    fn inputs(&self, paths: Vec<PathBuf>) -> Inputs {
        Inputs { paths, reading: self.reading.clone(), ..Inputs::default() }
    }

    /// The changes since the baseline, if there is one, with the options of the profile that is shown.
    fn diff(&self) -> anyhow::Result<Option<DiffView>> {
        let Some(baseline) = &self.baseline else { return Ok(None) };
        let sides = [vec![baseline.clone()], self.paths.clone()];
        // As in `diff`, samples out of focus still count in the divisor.
        let focus = filter::pattern("--focus", self.shape.stacks.focus.as_deref())?;
        let shape = StackShapeArgs { focus: None, ..self.shape.stacks.clone() };
        let value = self.value.value.clone();
        let query = DiffQuery { inputs: [1, self.paths.len()], focus, value, ..DiffQuery::default() };
        let filter = FilterArgs { matching: self.shape.matching.clone(), ..self.samples.alone() };
        let mut tables = Tables::default();
        let mut sink = ReshapeSink::new(DiffSink::new(query), shape.query()?);
        for side in sides {
            self.inputs(side).read_onto(&mut tables, &filter, &mut sink, "")?;
            sink.sink_mut().begin_after();
        }
        sink.finish(&tables)?;
        Ok(Some(sink.into_parts().0.into_view()))
    }
}

/// The files as they were read.
struct Explored {
    profile: Profile,
    heat: HeatMap,
    /// The programs of a trace that has events of Tokio.
    programs: Vec<TokioPage>,
    recovery: Recovery,
}

/// The keys from the file at `path`, or the default keys.
pub(crate) fn keymap<A: ExplorerAction>(path: Option<&str>) -> anyhow::Result<Bindings<A>> {
    let Some(path) = path else { return Ok(Bindings::default()) };
    let text = fs::read_to_string(path).map_err(|source| Error::Open { name: path.to_owned(), source })?;
    Bindings::from_json(&text).with_context(|| format!("invalid keymap {path}"))
}

/// Fails if standard output is not a terminal. `otherwise` names the command that needs none.
pub(crate) fn need_terminal(otherwise: &str) -> anyhow::Result<()> {
    if !Terminal::is_there() {
        bail!(
            "missing terminal: expected one on standard output; use {otherwise} instead to print to a pipe"
        );
    }
    Ok(())
}

/// The colours that the terminal supports and the user wants.
pub(crate) fn colours() -> Colours {
    let is =
        |name: &str, wanted: &[&str]| std::env::var(name).is_ok_and(|value| wanted.contains(&value.as_str()));
    let is_set = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match () {
        () if is_set || is("TERM", &["dumb"]) => Colours::None,
        () if is("COLORTERM", &["truecolor", "24bit"]) => Colours::True,
        () => Colours::Indexed,
    }
}

pub(crate) fn run(args: &ExploreArgs) -> anyhow::Result<Exit> {
    need_terminal("borehole report")?;
    interrupt::heed();
    if args.diagnose {
        diagnose::run()?;
        return Ok(Exit::Done);
    }
    args.check()?;
    // Created first, so that a change while the files are read is noticed.
    let mut followed = FollowedFiles::new(args);
    let Explored { profile, heat, programs, recovery } = args.read()?;
    if interrupt::requested() {
        return Ok(Exit::Interrupted);
    }
    let has_samples = profile.summary().samples > 0;
    let mut samples = App::new(profile, heat, args.settings(programs.is_empty())?);
    let mut terminal = Terminal::enter(Mouse::unless(args.no_mouse)).context("cannot use the terminal")?;
    if programs.is_empty() {
        show(&mut samples, &mut terminal, args, &mut followed)?;
    } else {
        let mut trace = TokioApp::new(programs, args.tokio_settings(has_samples)?);
        show(&mut trace, &mut terminal, args, &mut followed)?;
        while trace.wants_samples() {
            samples.resume();
            show(&mut samples, &mut terminal, args, &mut followed)?;
            show(&mut trace, &mut terminal, args, &mut followed)?;
        }
    }
    drop(terminal);
    Ok(Exit::after(&recovery))
}

/// Shows an explorer until the user leaves it.
fn show(
    app: &mut impl FileExplorer,
    terminal: &mut Terminal,
    args: &ExploreArgs,
    followed: &mut FollowedFiles,
) -> anyhow::Result<()> {
    let mut has_changed = true;
    while !app.is_over() && !interrupt::requested() {
        terminal.draw(app, has_changed)?;
        let inputs = terminal.wait()?;
        has_changed = !inputs.is_empty();
        for input in &inputs {
            app.take(input, &mut ExplorerHost::new(terminal));
        }
        if args.follow && followed.has_changed() {
            has_changed = true;
            messages::hold();
            match args.read().and_then(|explored| app.replace(explored, args)) {
                Err(error) => app.tell(format!("cannot reload: {}", messages::described(&error))),
                Ok(recovery) if !recovery.is_clean() => app
                    .tell("the file is damaged or still being written; borehole check says where".to_owned()),
                Ok(_) => {}
            }
        }
    }
    Ok(())
}

/// An explorer of files, which may grow.
trait FileExplorer: Explorer {
    fn is_over(&self) -> bool;
    fn take(&mut self, input: &TerminalInput, host: &mut ExplorerHost<'_>);
    /// Shows another state of the files.
    fn replace(&mut self, explored: Explored, args: &ExploreArgs) -> anyhow::Result<Recovery>;
    fn tell(&mut self, message: String);
}

impl FileExplorer for App {
    fn is_over(&self) -> bool {
        self.is_done()
    }

    fn take(&mut self, input: &TerminalInput, host: &mut ExplorerHost<'_>) {
        self.handle(input, host);
    }

    fn replace(&mut self, explored: Explored, args: &ExploreArgs) -> anyhow::Result<Recovery> {
        self.replace(explored.profile, explored.heat, args.diff()?);
        Ok(explored.recovery)
    }

    fn tell(&mut self, message: String) {
        self.say(message);
    }
}

impl FileExplorer for TokioApp {
    fn is_over(&self) -> bool {
        self.is_done() || self.asks_for_samples()
    }

    fn take(&mut self, input: &TerminalInput, host: &mut ExplorerHost<'_>) {
        self.handle(input, host);
    }

    fn replace(&mut self, explored: Explored, _: &ExploreArgs) -> anyhow::Result<Recovery> {
        self.replace(explored.programs);
        Ok(explored.recovery)
    }

    fn tell(&mut self, message: String) {
        self.say(message);
    }
}
