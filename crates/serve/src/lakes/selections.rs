//! Selections of a lake as profiles, so that they have the views of profiles: flame graphs, and diffs of two.

use std::io::Write as _;

use borehole_text::document;
use tempfile::NamedTempFile;
use tokio::process::Command;

use super::{LakeAsk, Lakes, sayable};
use crate::questions::shown_name;
use crate::refusal::{Refusal, RefusalKind};

/// The samples of a selection, added up by stack.
pub(crate) struct LakeSelection {
    /// A file with the profile. It goes with this value.
    pub(crate) file: NamedTempFile,
    /// The lake and what is selected of it, for people.
    pub(crate) title: String,
}

impl Lakes {
    /// The samples that are asked for, as a profile.
    pub(crate) async fn selection(&self, ask: &LakeAsk) -> Result<LakeSelection, Refusal> {
        let lake = self.named(ask.lake.as_deref())?;
        let choice = sayable(ask.choice())?;
        let mut command = Command::new(&self.options.program);
        command.arg("top").args(choice).args(["--to=pprof", "--sums", "--", lake]);
        let bytes = self.said_by(command).await?;
        let kept = NamedTempFile::new().and_then(|mut file| file.write_all(&bytes).map(|()| file));
        let file = kept.map_err(|error| {
            Refusal::new(RefusalKind::Internal, format!("cannot keep the lake's answer: {error}"))
        })?;
        Ok(LakeSelection { file, title: ask.title(lake) })
    }

    /// The samples of the two sides that are asked for, each as a profile.
    pub(crate) async fn sides(&self, ask: &LakeAsk) -> Result<[LakeSelection; 2], Refusal> {
        let (before, after) = (ask.side("before", &ask.before)?, ask.side("after", &ask.after)?);
        let (before, after) = tokio::try_join!(self.selection(&before), self.selection(&after))?;
        Ok([before, after])
    }
}

impl LakeAsk {
    /// The lake and what is selected of it, in words.
    fn title(&self, lake: &str) -> String {
        let times = match (&self.since, &self.until) {
            (None, None) => None,
            (since, until) => Some(format!(
                "{}..{}",
                since.as_deref().unwrap_or_default(),
                until.as_deref().unwrap_or_default()
            )),
        };
        let labels = self.label.iter().chain(&times).chain(&self.focus);
        let said: Vec<_> =
            self.service.iter().chain(&self.host).chain(labels).map(|text| shown_name(text)).collect();
        if said.is_empty() {
            return shown_name(lake);
        }
        format!("{}: {}", shown_name(lake), said.join(", "))
    }

    /// The question about one side of a comparison.
    fn side(&self, word: &str, said: &[String]) -> Result<Self, Refusal> {
        let mut side = Self { before: Vec::new(), after: Vec::new(), ..self.clone() };
        if said.is_empty() {
            return Err(Refusal::invalid(format!("missing {word}")).with_help("such as 2d..1d or version=1"));
        }
        for text in said {
            side.narrow(text)?;
        }
        Ok(side)
    }

    /// Adds a time range or a property to what is selected.
    fn narrow(&mut self, text: &str) -> Result<(), Refusal> {
        let filled = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        if let Some((key, value)) = text.split_once('=').filter(|(key, _)| !key.ends_with('!')) {
            match key {
                "service" => self.service = filled(value),
                "host" => self.host = filled(value),
                _ => self.label.push(text.to_owned()),
            }
        } else if let Some((since, until)) = text.split_once("..") {
            (self.since, self.until) = (filled(since), filled(until));
        } else {
            let found = document(text.as_bytes());
            return Err(Refusal::invalid(format!("expected a time range or KEY=VALUE, found {found}"))
                .with_help("/api/v1/lakes/diff also knows KEY!=VALUE"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_of_a_comparison_narrow_what_both_have_in_common() {
        let asked = LakeAsk {
            service: Some("shop".to_owned()),
            label: vec!["zone=a".to_owned()],
            before: vec!["2d..1d".to_owned(), "version=1".to_owned()],
            after: vec!["host=web9".to_owned(), "1d..".to_owned()],
            ..LakeAsk::default()
        };
        let before = asked.side("before", &asked.before).unwrap();
        assert_eq!(
            before.choice(),
            ["--service=shop", "--since=2d", "--until=1d", "--label=zone=a", "--label=version=1"]
        );
        assert_eq!(before.title("lake"), "lake: shop, zone=a, version=1, 2d..1d");
        let after = asked.side("after", &asked.after).unwrap();
        assert_eq!(after.choice(), ["--service=shop", "--host=web9", "--since=1d", "--label=zone=a"]);
        for wrong in ["host!=web1", "web1", ""] {
            assert!(asked.side("after", &[wrong.to_owned()]).is_err(), "{wrong}");
        }
        assert!(asked.side("after", &[]).is_err());
    }
}
