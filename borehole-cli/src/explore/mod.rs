//! `borehole explore`: a profile in the terminal.

mod diagnose;
mod follow;
mod host;
mod terminal;

use std::fs;

use anyhow::{Context as _, bail};
use borehole::model::Tables;
use borehole::{Error, ProfileSink as _, Recovery};
use borehole_analysis::{PathMap, Profile, ProfileBuilder, Query};
use borehole_tui::{App, Colours, Keymap, Settings};
use clap::Args;

use crate::exit::Exit;
use crate::inputs::{Inputs, Reading};
use crate::interrupt;
use follow::Followed;
use host::Files;
use terminal::Terminal;

/// What to explore, and how.
#[derive(Args, Clone, Debug)]
pub(crate) struct ExploreArgs {
    /// Files to read; `-` is standard input. Several are merged
    #[arg(value_name = "FILE", required_unless_present = "diagnose")]
    pub(crate) paths: Vec<String>,

    #[command(flatten)]
    pub(crate) reading: Reading,

    /// Keys: a JSON object of lists of byte sequences by action; actions that are not in it keep their keys
    #[arg(long, value_name = "FILE")]
    pub(crate) keymap: Option<String>,

    /// Paths that begin with FROM are shown, and their sources read, as if they began with TO; repeatable, the longest FROM
    /// wins
    #[arg(long, value_name = "FROM=TO", value_parser = path_rule)]
    pub(crate) path_map: Vec<(Vec<u8>, Vec<u8>)>,

    /// Show the file as it grows
    #[arg(long)]
    pub(crate) follow: bool,

    /// Print the bytes that the terminal sends, until q: what to write into a keymap
    #[arg(long)]
    pub(crate) diagnose: bool,
}

/// A rule of a path map, `FROM=TO`.
pub(crate) fn path_rule(text: &str) -> Result<(Vec<u8>, Vec<u8>), String> {
    PathMap::rule(text).ok_or_else(|| format!("expected FROM=TO, found {text}"))
}

impl ExploreArgs {
    fn settings(&self) -> anyhow::Result<Settings> {
        let keymap = match &self.keymap {
            Some(path) => {
                let text =
                    fs::read_to_string(path).map_err(|source| Error::Open { name: path.clone(), source })?;
                Keymap::from_json(&text).with_context(|| format!("invalid keymap {path}"))?
            }
            None => Keymap::default(),
        };
        let query = Query { path_map: PathMap::new(self.path_map.iter().cloned()), ..Query::default() };
        Ok(Settings {
            title: self.paths.join(" + "),
            keymap,
            colours: colours(),
            query,
            ..Settings::default()
        })
    }

    fn read(&self) -> anyhow::Result<(Profile, Recovery)> {
        let inputs = Inputs { paths: self.paths.clone(), reading: self.reading.clone(), ..Inputs::default() };
        let (mut tables, mut builder) = (Tables::default(), ProfileBuilder::default());
        let recovery = inputs.read_onto(&mut tables, &mut builder, "")?;
        builder.finish(&tables)?;
        Ok((builder.into_profile(tables), recovery))
    }
}

/// The colours that the terminal has and the user wants.
fn colours() -> Colours {
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
    if !Terminal::is_there() {
        bail!("missing terminal: expected one on standard output; borehole report prints to a pipe");
    }
    interrupt::heed();
    if args.diagnose {
        diagnose::run()?;
        return Ok(Exit::Done);
    }
    let settings = args.settings()?;
    let (profile, recovery) = args.read()?;
    if interrupt::requested() {
        return Ok(Exit::Interrupted);
    }
    let mut app = App::new(profile, settings);
    let mut followed = Followed::new(args);
    let mut terminal = Terminal::enter().context("cannot use the terminal")?;
    while !app.is_done() && !interrupt::requested() {
        terminal.draw(&mut app)?;
        let inputs = terminal.wait()?;
        for input in &inputs {
            app.handle(input, &mut Files::new(&mut terminal));
        }
        if args.follow && followed.has_changed() {
            match args.read() {
                Ok((profile, _)) => app.replace(profile),
                Err(error) => app.say(format!("cannot read it again: {error:#}")),
            }
        }
    }
    drop(terminal);
    Ok(Exit::after(&recovery))
}
