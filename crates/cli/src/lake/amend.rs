//! `borehole lake remove` and `relabel`.

use anyhow::bail;
use borehole_query::{AmendMode, Amended, Relabeling, RowChoice};
use borehole_text::counted;
use clap::Args;

use super::keep::cleared;
use super::open;
use super::origin::OriginArgs;
use super::times::instant;
use crate::exit::Exit;
use crate::messages::{out, show};
use crate::values::pair;

/// The options that choose rows.
#[derive(Args, Clone, Debug, Default)]
struct RowArgs {
    /// Rows of this input: its name, or its id in the table `sources`; may be repeated
    #[arg(long, value_name = "INPUT")]
    input: Vec<String>,

    #[command(flatten)]
    origin: OriginArgs,

    /// Rows from this time on, such as 2026-11-22T10:30Z, or an age such as 7d
    #[arg(long, value_name = "TIME", value_parser = instant)]
    since: Option<i64>,

    /// Rows before this time
    #[arg(long, value_name = "TIME", value_parser = instant)]
    until: Option<i64>,

    /// Change nothing; say how many rows match
    #[arg(long)]
    dry_run: bool,
}

/// `borehole lake remove`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RemoveArgs {
    /// The lake
    #[arg(value_name = "LAKE")]
    lake: String,

    #[command(flatten)]
    rows: RowArgs,
}

/// `borehole lake relabel`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RelabelArgs {
    /// The lake
    #[arg(value_name = "LAKE")]
    lake: String,

    /// Label to set, such as version=1.5; `service` and `host` set the service and the machine; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,

    /// Label to remove; may be repeated
    #[arg(long, value_name = "KEY")]
    unset: Vec<String>,

    #[command(flatten)]
    rows: RowArgs,
}

impl RowArgs {
    fn choice(&self) -> anyhow::Result<(RowChoice, AmendMode)> {
        let OriginArgs { service, host, label: labels } = self.origin.clone();
        let choice = RowChoice {
            sources: self.input.clone(),
            service,
            host,
            labels,
            since_us: self.since,
            until_us: self.until,
        };
        if choice.is_everything() {
            bail!("expected --input, --service, --host, --label, --since or --until, found none");
        }
        Ok((choice, if self.dry_run { AmendMode::Describe } else { AmendMode::Change }))
    }
}

pub(crate) fn remove(args: &RemoveArgs) -> anyhow::Result<Exit> {
    let (choice, mode) = args.rows.choice()?;
    let removed = open(&args.lake)?.remove(&choice, mode)?;
    tell(&removed, if mode == AmendMode::Change { "removed" } else { "would remove" })?;
    cleared(removed.cleared)
}

pub(crate) fn relabel(args: &RelabelArgs) -> anyhow::Result<Exit> {
    if args.set.is_empty() && args.unset.is_empty() {
        bail!("expected --set or --unset, found neither");
    }
    let set =
        args.set.iter().fold(Relabeling::default(), |relabeling, (key, value)| relabeling.set(key, value));
    let relabeling = args.unset.iter().fold(set, |relabeling, key| relabeling.unset(key));
    let (choice, mode) = args.rows.choice()?;
    let changed = open(&args.lake)?.relabel(&choice, &relabeling, mode)?;
    tell(&changed, if mode == AmendMode::Change { "relabelled" } else { "would relabel" })?;
    Ok(Exit::Done)
}

fn tell(amended: &Amended, verb: &str) -> anyhow::Result<()> {
    if amended.rows.is_empty() {
        out("no rows match")?;
        return Ok(());
    }
    let rows = amended.rows.iter().map(|(table, rows)| format!("{} of {table}", counted(*rows, "row")));
    show(&format!("{verb} {}", rows.collect::<Vec<_>>().join(", ")))?;
    if amended.stacks > 0 {
        out(&format!("deleted {} that no sample uses any more", counted(amended.stacks, "stack")))?;
    }
    Ok(())
}
