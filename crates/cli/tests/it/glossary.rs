//! Help, headings and screens use the terms of `docs/glossary.md`, and none of the words that it avoids.

use std::fs;
use std::path::Path;

use borehole_testkit::project_file;
use regex::Regex;

use crate::pages::COMMANDS;
use crate::program::run;

/// A text that users read, and where it is.
struct UserText {
    place: String,
    text: String,
}

/// The glossary in two parts: the terms, and the words that are avoided.
fn glossary() -> [Vec<[String; 2]>; 2] {
    let page = fs::read_to_string(project_file("docs/glossary.md")).unwrap();
    let (terms, avoided) = page.split_once("\n## Words that we do not use\n").unwrap();
    [terms, avoided].map(|part| {
        let rows = part.lines().filter(|line| line.starts_with("| ")).skip(1);
        let cells = |row: &str| row.splitn(4, '|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
        rows.map(|row| [cells(row)[1].clone(), cells(row)[2].clone()]).collect()
    })
}

/// The words in a row of the avoided ones.
fn words(row: &[String; 2]) -> impl Iterator<Item = &str> {
    row[0].split(", ")
}

/// Adds the help of the command called with `words`, and of its subcommands.
fn add_help(words: &[&str], found: &mut Vec<UserText>) {
    let help = String::from_utf8(run(&[words, &["--help"]].concat()).quietly()).unwrap();
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let entries = list.take_while(|line| !line.is_empty()).filter_map(|line| line.strip_prefix("  "));
    for entry in entries.filter(|entry| !entry.starts_with(' ')) {
        let name = entry.split(' ').next().unwrap();
        // Some are programs of their own, which are not in every build.
        let is_there = match name {
            "help" => false,
            "lake" => cfg!(feature = "lake"),
            "mcp" | "query" | "serve" => cfg!(feature = "serve"),
            _ => true,
        };
        if is_there {
            add_help(&[words, &[name]].concat(), found);
        }
    }
    found.push(UserText { place: words.join(" "), text: help });
}

fn helps() -> Vec<UserText> {
    let mut found = Vec::new();
    add_help(&[], &mut found);
    for command in COMMANDS {
        assert!(found.iter().any(|help| help.place == command), "{command}");
    }
    found
}

/// The files in `folder` of the project and the folders below it whose names end in `ending`.
fn files(folder: &Path, ending: &str) -> Vec<UserText> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let found = paths.flat_map(|path| match path.to_str() {
        Some(name) if name.ends_with(ending) => {
            vec![UserText { place: name.to_owned(), text: fs::read_to_string(&path).unwrap() }]
        }
        _ if path.is_dir() => files(&path, ending),
        _ => Vec::new(),
    });
    found.collect()
}

fn docs() -> Vec<UserText> {
    let mut pages = files(&project_file("docs"), ".md");
    assert!(pages.len() > 20, "{}", pages.len());
    pages.retain(|page| !page.place.ends_with("glossary.md"));
    pages
}

/// The screens of the explorers.
fn screens() -> Vec<UserText> {
    let folders = ["crates/cli/tests/golden", "crates/tui/tests/golden"].map(project_file);
    let found: Vec<_> = folders.iter().flat_map(|folder| files(folder, ".txt")).collect();
    assert!(found.iter().any(|screen| screen.text.contains("  shallow  ")));
    found
}

/// The headings of a page and of its tables, without what is quoted as code.
fn headings(page: &UserText) -> UserText {
    let mut is_code = false;
    let is_text = |line: &&str| {
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    };
    let lines: Vec<&str> = page.text.lines().map(str::trim_start).filter(is_text).collect();
    let titles = lines.iter().filter(|line| line.starts_with('#')).copied();
    let tables = lines.windows(2).filter(|pair| pair[1].starts_with("|--")).map(|pair| pair[0]);
    let text = titles.chain(tables).collect::<Vec<_>>().join("\n");
    UserText { place: page.place.clone(), text }
}

/// The cells of all lines: what stands between bars or between two spaces.
fn cells(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('|').flat_map(|part| part.split("  "))).map(str::trim)
}

/// A pattern for a word or words on one or more lines, and for their plural. Parts of words do not match.
fn pattern(word: &str) -> String {
    format!(r"(?i)\b{}s?\b", regex::escape(word).replace(' ', r"\s+"))
}

/// Whether `text` has `word` outside of the names of options.
fn says(text: &str, word: &str) -> bool {
    Regex::new(&format!("(?:^|[^-]){}(?:[^-]|$)", pattern(word))).unwrap().is_match(text)
}

#[test]
fn the_glossary_is_short_and_sorted_and_says_only_its_own_terms() {
    let [terms, avoided] = glossary();
    let names: Vec<_> = terms.iter().map(|row| &*row[0]).collect();
    assert!((30..=60).contains(&names.len()), "{}", names.len());
    assert!(names.is_sorted(), "{names:?}");
    let bare = |word: &str| word.trim_matches('`').to_owned();
    let rows: Vec<Vec<_>> = avoided.iter().map(|row| words(row).map(bare).collect()).collect();
    assert!(rows.is_sorted() && rows.iter().all(|words| words.is_sorted()), "{rows:?}");
    for row in &avoided {
        assert!(row[1].split(", ").all(|term| names.contains(&term)), "{row:?}");
        assert!(words(row).all(|word| !names.contains(&word)), "{row:?}");
    }
}

#[test]
fn every_term_is_in_use() {
    let texts: Vec<_> = helps().into_iter().chain(docs()).collect();
    for [term, _] in &glossary()[0] {
        let pattern = Regex::new(&pattern(term)).unwrap();
        assert!(texts.iter().any(|text| pattern.is_match(&text.text)), "{term}");
    }
}

#[test]
fn words_that_the_glossary_avoids_are_nowhere() {
    let (pages, screens) = (docs(), screens());
    let tables: Vec<_> = pages.iter().chain(&screens).collect();
    let headings: Vec<_> = pages.iter().map(headings).collect();
    let helps = helps();
    let texts: Vec<_> = helps.iter().chain(&headings).chain(&screens).collect();
    for word in glossary()[1].iter().flat_map(words) {
        if let Some(heading) = word.strip_prefix('`').and_then(|word| word.strip_suffix('`')) {
            let found = tables.iter().find(|table| cells(&table.text).any(|cell| cell == heading));
            assert!(found.is_none(), "a column is called {heading:?} in {}", found.unwrap().place);
        } else {
            let found = texts.iter().find(|text| says(&text.text, word));
            assert!(found.is_none(), "{word:?} in {:?}", found.unwrap().place);
        }
    }
}

#[test]
fn a_word_is_found_in_any_case_and_number_but_not_in_options() {
    assert!(says("Functions by Own\n    times, largest first", "own time"));
    assert!(says("scrub", "scrub"));
    assert!(!says("--scrub-key <TEXT>, or scrubber", "scrub"));
    assert!(cells("  retained  own  objects").any(|cell| cell == "own"));
    assert!(cells("| time | flat |").any(|cell| cell == "flat"));
}
