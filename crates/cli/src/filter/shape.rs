//! The options that shape stacks before they are counted.

use anyhow::Context as _;
use borehole::ProfileSink;
use borehole::model::Tables;
use borehole_analysis::{Collapse, LineRows, PathMap, Pattern, Query, Recursion, ReshapeSink};
use clap::Args;

use super::say_none_chosen;

/// Options that choose and shape stacks. Hidden frames are dropped first, so other options do not see them.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Shaping stacks")]
pub(crate) struct ShapeArgs {
    /// Count only samples with a frame that matches
    #[arg(long = "match", visible_alias = "include", value_name = "PATTERN")]
    pub(crate) matching: Option<String>,

    #[command(flatten)]
    pub(crate) stacks: StackShapeArgs,
}

/// Options that shape stacks.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Shaping stacks")]
pub(crate) struct StackShapeArgs {
    /// Exclude samples with a frame that matches
    #[arg(long, value_name = "PATTERN")]
    pub(crate) exclude: Option<String>,

    /// Count only samples with a frame that matches, and their stacks from that frame on
    #[arg(long, value_name = "PATTERN")]
    pub(crate) focus: Option<String>,

    /// Drop frames that match before counting
    #[arg(long, value_name = "PATTERN")]
    pub(crate) hide: Option<String>,

    /// Ignore files and lines: count functions
    #[arg(long, visible_alias = "strip-lines")]
    pub(crate) no_line: bool,

    /// Merge the frames of a function that calls itself
    #[arg(long)]
    pub(crate) fold_recursion: bool,

    /// Merge neighbouring frames that match into one frame called NAME; repeatable
    #[arg(long, value_name = "NAME=PATTERN", value_parser = name_and_pattern)]
    pub(crate) collapse: Vec<(String, String)>,

    /// Merge calls within installed packages into [vendor], and within the language's library into [stdlib]
    #[arg(long)]
    pub(crate) collapse_libraries: bool,

    /// Replace the prefix FROM of paths by TO; repeatable, the longest FROM wins
    #[arg(long, value_name = "FROM=TO", value_parser = path_rule)]
    pub(crate) path_map: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Patterns for frames of installed packages and of the language's own library.
///
/// Source: Composer's and npm's folders, Python's `site-packages` and library, Cargo's registry, the paths that rustc
/// gives the standard library, and the names of PHP and Python for code without a file.
const LIBRARIES: [(&str, &str); 2] = [
    ("[vendor]", r"/vendor/|/node_modules/|/site-packages/|/dist-packages/|/\.cargo/(registry|git)/"),
    ("[stdlib]", r" <internal>:|<frozen |/lib(64)?/python[0-9.]+/|/rustc/[0-9a-f]+/|^<?(std|core|alloc)::"),
];

/// The rules that merge frames of libraries.
pub(crate) fn libraries() -> anyhow::Result<Vec<Collapse>> {
    LIBRARIES.iter().map(|(name, source)| collapse(name, source)).collect()
}

fn collapse(name: &str, source: &str) -> anyhow::Result<Collapse> {
    let pattern = Pattern::new(source).context("cannot use --collapse")?;
    Ok(Collapse { pattern, name: name.as_bytes().to_vec() })
}

fn name_and_pattern(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(name, pattern)| !name.is_empty() && !pattern.is_empty());
    let (name, pattern) = parts.ok_or_else(|| format!("expected NAME=PATTERN, found {text}"))?;
    Ok((name.to_owned(), pattern.to_owned()))
}

fn path_rule(text: &str) -> Result<(Vec<u8>, Vec<u8>), String> {
    PathMap::rule(text).ok_or_else(|| format!("expected FROM=TO, found {text}"))
}

impl ShapeArgs {
    /// Reads a profile into `sink` through these options. Returns the sink, the tables of its ids, and the result of
    /// `read`.
    pub(crate) fn reading<S: ProfileSink, R>(
        &self,
        mut sink: S,
        read: impl FnOnce(&mut Tables, &mut dyn ProfileSink) -> anyhow::Result<R>,
    ) -> anyhow::Result<(S, Tables, R)> {
        let mut tables = Tables::default();
        if !self.is_asked() {
            let read = read(&mut tables, &mut sink)?;
            sink.finish(&tables)?;
            return Ok((sink, tables, read));
        }
        let mut shaped = ReshapeSink::new(sink, self.query()?);
        let read = read(&mut tables, &mut shaped)?;
        shaped.finish(&tables)?;
        say_if_all_left_out(&shaped);
        let (sink, tables) = shaped.into_parts();
        Ok((sink, tables, read))
    }

    /// Whether any option is given.
    pub(crate) fn is_asked(&self) -> bool {
        self.matching.is_some() || self.stacks.is_asked()
    }

    /// The options as a query.
    pub(crate) fn query(&self) -> anyhow::Result<Query> {
        Ok(Query { keep: pattern("--match", self.matching.as_deref())?, ..self.stacks.query()? })
    }
}

impl StackShapeArgs {
    /// Reads a profile into `sink` through these options. Returns the result of `read`.
    pub(crate) fn reading<R>(
        &self,
        sink: &mut dyn ProfileSink,
        read: impl FnOnce(&mut dyn ProfileSink) -> anyhow::Result<R>,
    ) -> anyhow::Result<R> {
        if !self.is_asked() {
            return read(sink);
        }
        let mut shaped = ReshapeSink::new(sink, self.query()?);
        let read = read(&mut shaped)?;
        say_if_all_left_out(&shaped);
        Ok(read)
    }

    /// Whether any option is given.
    pub(crate) fn is_asked(&self) -> bool {
        self.no_line
            || self.fold_recursion
            || self.collapse_libraries
            || !(self.collapse.is_empty() && self.path_map.is_empty())
            || [&self.exclude, &self.focus, &self.hide].into_iter().any(Option::is_some)
    }

    pub(crate) fn query(&self) -> anyhow::Result<Query> {
        let named = self.collapse.iter().map(|(name, source)| collapse(name, source));
        let mut collapse = named.collect::<anyhow::Result<Vec<_>>>()?;
        if self.collapse_libraries {
            collapse.extend(libraries()?);
        }
        Ok(Query {
            lines: if self.no_line { LineRows::Together } else { LineRows::Apart },
            recursion: if self.fold_recursion { Recursion::Folded } else { Recursion::Kept },
            exclude: pattern("--exclude", self.exclude.as_deref())?,
            focus: pattern("--focus", self.focus.as_deref())?,
            hide: pattern("--hide", self.hide.as_deref())?,
            collapse,
            path_map: PathMap::new(self.path_map.iter().cloned()),
            ..Query::default()
        })
    }
}

/// Prints a note if no sample is left.
pub(crate) fn say_if_all_left_out<S: ProfileSink>(shaped: &ReshapeSink<S>) {
    if let Some(samples) = shaped.all_left_out() {
        say_none_chosen(&[(samples, "sample")]);
    }
}

/// Compiles a pattern; `None` if it is missing or empty.
pub(crate) fn pattern(option: &'static str, source: Option<&str>) -> anyhow::Result<Option<Pattern>> {
    let source = source.filter(|source| !source.is_empty());
    source.map(Pattern::new).transpose().with_context(|| format!("cannot use {option}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_told_by_their_paths() {
        let name = |text: &str| {
            let found = libraries().unwrap();
            let found = found.iter().find(|collapse| collapse.pattern.is_match(text.as_bytes()));
            found.map(|collapse| String::from_utf8(collapse.name.clone()).unwrap())
        };
        for text in [
            "Monolog\\Logger::log /app/vendor/monolog/Logger.php:3",
            "f /venv/lib/python3.15/site-packages/x.py:1",
            "serde::x /home/me/.cargo/registry/src/serde/lib.rs:1",
        ] {
            assert_eq!(name(text).as_deref(), Some("[vendor]"), "{text}");
        }
        for text in [
            "strlen <internal>:-1",
            "run /usr/lib/python3.15/threading.py:9",
            "std::thread::spawn",
            "core::iter::next",
        ] {
            assert_eq!(name(text).as_deref(), Some("[stdlib]"), "{text}");
        }
        for text in ["main /app/index.php:1", "stdlike::f", "App\\Core::run /app/core.php:2"] {
            assert_eq!(name(text), None, "{text}");
        }
    }
}
