//! The entry points of the library that no example in its documentation shows.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;
use std::str::FromStr as _;

use anyhow::{Context, Result};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use crate::tidy;

/// The crates whose entry points have examples.
const CRATES: [&str; 3] = ["borehole", "heap", "recorder"];

/// The macro that makes examples of the crate `heap`.
const EXAMPLE_MACRO: &str = "graph_example";

/// The entry points without an example: public functions, and traits and types with public functions. The example of a type may
/// be that of one of its functions, or another that names the type.
///
/// # Errors
/// When a source cannot be read.
pub(super) fn missing(root: &Path) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    for name in CRATES {
        let mut found = EntryPoints::default();
        for file in tidy::rust_files(&root.join("crates").join(name).join("src"))? {
            let source = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            let tokens = TokenStream::from_str(&source).map_err(|error| anyhow::anyhow!("{error}"))?;
            found.file = file.strip_prefix(root).unwrap_or(&file).display().to_string();
            found.items(tokens, None);
        }
        missing.extend(found.missing());
    }
    Ok(missing)
}

/// The entry points of a crate.
#[derive(Default)]
struct EntryPoints {
    /// The file that is looked at.
    file: String,
    /// The public functions outside of types, and whether each has an example.
    functions: Vec<(String, bool)>,
    /// By name: the file of each public trait and type, and whether it has an example.
    types: BTreeMap<String, (String, bool)>,
    /// The types with public functions, and whether one of those has an example.
    methods: BTreeMap<String, bool>,
    traits: Vec<String>,
    /// The words of all examples.
    words: HashSet<String>,
}

impl EntryPoints {
    fn missing(self) -> Vec<String> {
        let Self { functions, types, methods, traits, words, .. } = self;
        let functions = functions.into_iter().filter(|(_, is_shown)| !is_shown).map(|(name, _)| name);
        let is_called = |name: &String| methods.contains_key(name) || traits.contains(name);
        let is_shown = |name: &String| methods.get(name) == Some(&true) || words.contains(name);
        let types =
            types.into_iter().filter(|(name, (_, shown))| is_called(name) && !shown && !is_shown(name));
        functions.chain(types.map(|(name, (file, _))| format!("{file}: {name}"))).collect()
    }

    /// Looks at the items of a module, or of the block of the type `of`.
    fn items(&mut self, tokens: TokenStream, of: Option<&str>) {
        let (mut words, mut docs): (Vec<String>, _) = (Vec::new(), String::new());
        for token in tokens {
            match token {
                TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => docs += &doc(&group),
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                    self.item(&words, &docs, of);
                    if let Some(of) = block_of(&words) {
                        self.items(group.stream(), Some(&of));
                    }
                    (words, docs) = (Vec::new(), String::new());
                }
                TokenTree::Punct(punct) if punct.as_char() == ';' => {
                    self.item(&words, &docs, of);
                    (words, docs) = (Vec::new(), String::new());
                }
                TokenTree::Punct(punct) if "#!".contains(punct.as_char()) => {}
                TokenTree::Group(group) => words.push(group.to_string()),
                other => words.push(other.to_string()),
            }
        }
    }

    fn item(&mut self, words: &[String], docs: &str, of: Option<&str>) {
        let code = code(docs);
        let is_shown = !code.is_empty();
        let parts = code.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        self.words.extend(parts.map(str::to_owned));
        let is_public = words.first().is_some_and(|word| word == "pub")
            && words.get(1).is_some_and(|word| !word.starts_with('('));
        let kinds = ["fn", "struct", "enum", "trait"];
        let Some(place) = words.iter().position(|word| kinds.contains(&word.as_str())) else { return };
        let Some(name) = words.get(place + 1).filter(|_| is_public) else { return };
        match (words[place].as_str(), of) {
            ("fn", Some(of)) => *self.methods.entry(of.to_owned()).or_default() |= is_shown,
            ("fn", None) => self.functions.push((format!("{}: {name}", self.file), is_shown)),
            (kind, _) => {
                if kind == "trait" {
                    self.traits.push(name.clone());
                }
                self.types.insert(name.clone(), (self.file.clone(), is_shown));
            }
        }
    }
}

/// The type whose block begins with `words`; `None` for another block, and for that of a trait.
fn block_of(words: &[String]) -> Option<String> {
    let is_block = words.first().is_some_and(|word| word == "impl");
    if !is_block || words.iter().any(|word| word == "for") {
        return None;
    }
    let mut depth = 0;
    let mut pairs = words.iter().zip(words.iter().skip(1));
    let name = pairs.find(|(before, word)| {
        // An arrow is two words.
        depth += i32::from(*word == "<") - i32::from(*word == ">" && *before != "-");
        depth == 0 && *word != ">"
    });
    name.map(|(_, word)| word.clone())
}

/// The documentation in an attribute; empty for another attribute. An example that a macro makes is fenced like others.
fn doc(attribute: &Group) -> String {
    let mut tokens = attribute.stream().into_iter();
    if !matches!(tokens.next(), Some(TokenTree::Ident(name)) if name == "doc") {
        return String::new();
    }
    let text: String = tokens.skip(1).map(|token| token.to_string()).collect();
    if text.contains(EXAMPLE_MACRO) {
        return format!("```\n{text}\n```\n");
    }
    format!("{}\n", text.trim_start_matches('r').trim_matches(['"', '#']).trim_start())
}

/// The code in documentation.
fn code(docs: &str) -> String {
    let (mut code, mut is_inside) = (String::new(), false);
    for line in docs.lines() {
        if line.starts_with("```") {
            is_inside = !is_inside;
        } else if is_inside {
            code += line;
            code.push('\n');
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(source: &str) -> Vec<String> {
        let mut found = EntryPoints { file: "a.rs".to_owned(), ..EntryPoints::default() };
        found.items(TokenStream::from_str(source).unwrap(), None);
        found.missing()
    }

    #[test]
    fn what_no_example_shows_is_named() {
        let source = "/// Docs.\npub fn bare() {}\n/// ```\n/// shown(Named::new());\n/// ```\npub fn shown() {}\n\
            pub struct Plain { pub x: u8 }\npub struct Named;\nimpl Named { pub fn new() -> Self { Self } }\n\
            /// Docs.\npub struct Unseen<T>(T);\nimpl<T: Fn() -> u8> Unseen<T> { pub const fn get(&self) {} }\n\
            pub struct Seen;\nimpl Seen {\n/// ```\n/// x\n/// ```\npub fn get() {} }\npub trait Unused { fn f(); }\n\
            #[doc = crate::graph_example!(r#\"y\"#)]\n#[must_use]\npub fn made() {}\npub(crate) fn own() {}";
        assert_eq!(missing(source), ["a.rs: bare", "a.rs: Unseen", "a.rs: Unused"]);
    }
}
