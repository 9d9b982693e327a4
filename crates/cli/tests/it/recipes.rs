//! Checks the recipes of `docs/recipes.md`: their commands print what the page shows.
//!
//! A recipe is a section. Its `console` blocks are one `bash` session: `$ ` begins a command, the lines below are its
//! output, and `? 1` among them is its exit code if that is not 0. Numbers stand for any number, a line `...` for any lines,
//! and `[..]` for the rest of a word or of several.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::{env, fs};

use borehole_testkit::{Scratch, peers, project_file};
use regex::Regex;

/// A recipe of the page.
struct Recipe {
    title: String,
    steps: Vec<Step>,
}

/// A command and its output.
struct Step {
    command: String,
    code: i32,
    prints: Vec<String>,
}

fn recipes() -> Vec<Recipe> {
    let page = fs::read_to_string(project_file("docs/recipes.md")).unwrap();
    let mut recipes: Vec<Recipe> = Vec::new();
    let mut is_session = false;
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            recipes.push(Recipe { title: title.to_owned(), steps: Vec::new() });
        } else if line.starts_with("```") {
            is_session = line == "```console";
        } else if is_session {
            recipes.last_mut().expect("a session is in a recipe").take(line);
        }
    }
    recipes
}

impl Recipe {
    fn take(&mut self, line: &str) {
        if let Some(command) = line.strip_prefix("$ ") {
            self.steps.push(Step { command: command.to_owned(), code: 0, prints: Vec::new() });
            return;
        }
        let step = self.steps.last_mut().expect("a command comes before its output");
        match line.strip_prefix("? ") {
            Some(code) => step.code = code.parse().unwrap(),
            None if step.command.ends_with('\\') => step.command = format!("{}\n{line}", step.command),
            None => step.prints.push(line.to_owned()),
        }
    }

    /// Runs it in a folder with the files of the project.
    #[track_caller]
    fn works(&self) {
        let scratch = Scratch::new();
        for folder in ["corpus", "examples"] {
            std::os::unix::fs::symlink(project_file(folder), scratch.path(folder)).unwrap();
        }
        let told = bash(&scratch.path(""), &self.script());
        let mut answers = told.split(MARK);
        for step in &self.steps {
            let answer = answers.next().unwrap_or_default();
            let (printed, code) = answer.rsplit_once('\n').unwrap_or((answer, ""));
            let at = format!("{}: $ {}", self.title, step.command);
            assert_eq!(code.trim(), step.code.to_string(), "{at}\n{printed}");
            let printed: Vec<_> = printed.lines().collect();
            assert!(
                is_told(&step.prints, &printed),
                "{at}\nprinted\n{}\nexpected\n{}",
                printed.join("\n"),
                step.prints.join("\n")
            );
        }
    }

    /// Its commands, each followed by its exit code and a mark.
    fn script(&self) -> String {
        let each = |step: &Step| format!("{}\nprintf '\\n%s{MARK}' $?\n", step.command);
        self.steps.iter().map(each).collect()
    }
}

/// A mark that no command prints.
const MARK: &str = "\u{1}mark\u{1}";

/// The output of a session on both streams, as a terminal shows it. Processes that it leaves running are ended.
fn bash(folder: &Path, script: &str) -> String {
    let ours = Path::new(env!("CARGO_BIN_EXE_borehole")).parent().unwrap().to_owned();
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([ours].into_iter().chain(env::split_paths(&path))).unwrap();
    let script = format!("exec 2>&1\ntrap 'kill $(jobs -p) 2> /dev/null' EXIT\n{script}");
    let mut bash = Command::new("bash");
    bash.args(["-c", &script])
        .current_dir(folder)
        .env("PATH", path)
        .env("COLUMNS", "100")
        .stdin(Stdio::null());
    String::from_utf8(bash.output().unwrap().stdout).unwrap()
}

/// Whether `printed` matches the page.
fn is_told<P: AsRef<str>>(said: &[String], printed: &[P]) -> bool {
    match (said, printed) {
        ([], rest) => rest.iter().all(|line| line.as_ref().trim().is_empty()),
        ([first, rest @ ..], _) if first.trim() == "..." => {
            (0..=printed.len()).any(|skipped| is_told(rest, &printed[skipped..]))
        }
        ([first, ..], [line, lines @ ..]) if !first.is_empty() && line.as_ref().is_empty() => {
            is_told(said, lines)
        }
        ([first, rest @ ..], [line, lines @ ..]) => is_line(first, line.as_ref()) && is_told(rest, lines),
        ([first, rest @ ..], []) => first.is_empty() && is_told(rest, printed),
    }
}

/// Whether a line matches the page. Numbers, spaces and rules of tables may be longer or shorter.
fn is_line(said: &str, line: &str) -> bool {
    let (said, line) = (loosened(said), loosened(line));
    let mut parts = said.split("[..]");
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let parts: Vec<_> = parts.collect();
    let Some((last, between)) = parts.split_last() else { return rest.is_empty() };
    for part in between {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

fn loosened(line: &str) -> String {
    static NUMBER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\d[\d,.]*\b").unwrap());
    static SPACES: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\s+").unwrap());
    static RULE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"-{2,}").unwrap());
    let line = NUMBER.replace_all(line.trim(), "0");
    let line = SPACES.replace_all(&line, " ");
    RULE.replace_all(&line, "--").into_owned()
}

/// The recipe called `title`, which needs these reference programs.
#[track_caller]
fn recipe(title: &str, needs: &[&str]) {
    if needs.iter().any(|name| peers::peer(name).is_none()) {
        return;
    }
    let recipe = recipes().into_iter().find(|recipe| recipe.title == title);
    recipe.unwrap_or_else(|| panic!("expected a recipe called {title}")).works();
}

#[test]
fn recipe_slow_function_of_a_php_program() {
    recipe("Where a PHP program spends its time", &["php", "php-parse"]);
}

#[test]
fn recipe_leaking_worker() {
    recipe("What a PHP worker leaks", &["php"]);
}

#[test]
fn recipe_long_poll_of_a_tokio_program() {
    recipe("What blocks a Tokio runtime", &[]);
}

#[test]
fn recipe_change_of_a_python_program() {
    recipe("What a change did to a Python program", &[]);
}

#[test]
fn recipe_trace_after_a_crash() {
    recipe("What a crash has left of a trace", &[]);
}

#[cfg(feature = "lake")]
#[test]
fn recipe_query_on_many_traces() {
    recipe("One question to many traces", &[]);
}

#[test]
fn every_recipe_is_tested() {
    let me = include_str!("recipes.rs");
    let titles: Vec<_> = recipes().into_iter().map(|recipe| recipe.title).collect();
    assert!(!titles.is_empty());
    for title in titles {
        assert!(me.contains(&format!("recipe(\"{title}\"")), "no test runs the recipe {title}");
    }
}

#[test]
fn wrong_output_on_the_page_is_noticed() {
    let said = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>();
    let printed = ["samples: 1,204", "| 12 |  3.5% | main |", "+----+", "", "end"];
    assert!(is_told(&said(&["samples: 9", "| 1 | 99.25% | main |", "+-------+", "end"]), &printed));
    assert!(is_told(&said(&["samples: 9", "...", "end"]), &printed));
    assert!(is_told(&said(&["[..]: 9", "| 1 | 2% | ma[..] |", "..."]), &printed));
    assert!(!is_told(&said(&["samples: 9", "| 1 | 99.25% | main |", "+-------+"]), &printed));
    assert!(!is_told(&said(&["samples: many", "..."]), &printed));
    assert!(!is_told(&said(&["...", "begin"]), &printed));
    assert!(!is_told(&said(&["samples: 9", "| 1 | 2% | run |", "..."]), &printed));
}
