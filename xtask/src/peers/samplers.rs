//! Samplers of Python programs whose files people have: py-spy and pyinstrument. And the programs that people sample.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Ready, once, pinned};
use crate::command;

const PY_SPY: &str = "0.4.3";
const PYINSTRUMENT: &str = "5.1.3";
const GUNICORN: &str = "27.0.1";

/// Installs py-spy unless it is there.
///
/// # Errors
/// When Python cannot, or it does not run.
pub(crate) fn py_spy(folder: &Path) -> Result<Ready> {
    let home = once(folder, &format!("py-spy-{PY_SPY}"), |into| {
        pinned::pip(into, include_str!("pinned/py_spy.txt"))
    })?;
    ready(vec![home.join("bin/py-spy").display().to_string()], PY_SPY)
}

/// Installs pyinstrument unless it is there.
///
/// # Errors
/// As [`py_spy`].
pub(crate) fn pyinstrument(folder: &Path) -> Result<Ready> {
    let home = once(folder, &format!("pyinstrument-{PYINSTRUMENT}"), |into| {
        pinned::pip(into, include_str!("pinned/pyinstrument.txt"))
    })?;
    let python = command::find("python3").context("python3 is not on the path")?;
    let path = format!("PYTHONPATH={}", home.display());
    let run = ["env", &path, &python.display().to_string(), "-m", "pyinstrument"];
    ready(run.map(str::to_owned).to_vec(), PYINSTRUMENT)
}

/// Installs servers, workers and number crunchers of Python unless they are there. The command is a Python that finds them.
///
/// # Errors
/// As [`py_spy`].
pub(crate) fn servers(folder: &Path) -> Result<Ready> {
    let home = once(folder, &format!("python-servers-{GUNICORN}"), |into| {
        pinned::pip(into, include_str!("pinned/python_servers.txt"))
    })?;
    let python = command::find("python3").context("python3 is not on the path")?;
    let path = format!("PYTHONPATH={}", home.display());
    let run = ["env", &path, &python.display().to_string()].map(str::to_owned).to_vec();
    let question = "import celery, flask, gunicorn, numpy, uvicorn; print(gunicorn.__version__)";
    command::output(Command::new(&run[0]).args(&run[1..]).args(["-c", question]))?;
    Ok(Ready { command: run, version: GUNICORN.to_owned() })
}

fn ready(run: Vec<String>, version: &str) -> Result<Ready> {
    command::output(Command::new(&run[0]).args(&run[1..]).arg("--version"))?;
    Ok(Ready { command: run, version: version.to_owned() })
}
