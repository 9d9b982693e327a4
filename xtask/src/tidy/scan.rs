//! The facts of a Rust source: the names that it mentions, its functions, types, modules, comments and public items.
//!
//! It works on tokens, so comments and strings never count, macro arguments do, and code that does not
//! compile under the present features is seen like any other.

use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, Group, Spacing, TokenStream, TokenTree};

/// The facts of one file.
#[derive(Debug, Default)]
pub(crate) struct SourceFacts {
    pub(crate) mentions: Vec<Mention>,
    pub(crate) functions: Vec<FunctionItem>,
    pub(crate) types: Vec<TypeItem>,
    pub(crate) modules: Vec<Module>,
    /// The first line of each doc comment.
    pub(crate) doc_beginnings: Vec<DocBeginning>,
    /// The texts of literals outside tests and comments.
    pub(crate) literals: Vec<String>,
    /// Items that are `pub` without restriction and stand in a module, not in an `impl`.
    pub(crate) public_items: usize,
    /// The line of the first item that is only there in tests.
    pub(crate) first_test_line: Option<usize>,
}

/// A path, macro, method or attribute, where it stands.
#[derive(Debug)]
pub(crate) struct Mention {
    /// The segments; `self` and `super` are resolved to paths from `crate`.
    pub(crate) path: Vec<String>,
    pub(crate) form: MentionForm,
    pub(crate) line: usize,
    pub(crate) in_test: bool,
}

/// How a name is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MentionForm {
    Path,
    Macro,
    Method,
    Attribute,
}

/// A function with a body.
#[derive(Debug)]
pub(crate) struct FunctionItem {
    pub(crate) name: String,
    pub(crate) line: usize,
    /// From the line of `fn` to the closing brace.
    pub(crate) lines: usize,
    pub(crate) in_test: bool,
}

/// A struct, enum, union, trait or type alias; no associated type.
#[derive(Debug)]
pub(crate) struct TypeItem {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) in_test: bool,
}

/// Where a doc comment begins, and with which words.
#[derive(Debug)]
pub(crate) struct DocBeginning {
    pub(crate) text: String,
    pub(crate) line: usize,
}

/// A module declared in the file.
#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) name: String,
    pub(crate) line: usize,
}

impl Mention {
    /// Whether the path ends in `names`.
    pub(crate) fn ends_with(&self, names: &[&str]) -> bool {
        self.path.len() >= names.len() && self.path.iter().rev().zip(names.iter().rev()).all(|(a, b)| a == b)
    }

    /// Whether the path begins with `names`.
    pub(crate) fn starts_with(&self, names: &[&str]) -> bool {
        self.path.len() >= names.len() && self.path.iter().zip(names).all(|(a, b)| a == b)
    }
}

/// Reads a source that is the module `module` of its crate; `in_test` when all of it is test code.
///
/// # Errors
/// When `text` does not consist of Rust tokens.
pub(crate) fn facts(text: &str, module: &[String], in_test: bool) -> Result<SourceFacts> {
    let tokens: TokenStream = text.parse().map_err(|error| anyhow!("{error}"))?;
    let mut scan = Scan { facts: SourceFacts::default(), module: module.to_vec() };
    scan.block(tokens, ScanPlace { is_module: true, in_test });
    Ok(scan.facts)
}

/// The surroundings of a run of tokens.
#[derive(Clone, Copy)]
struct ScanPlace {
    is_module: bool,
    in_test: bool,
}

struct Scan {
    facts: SourceFacts,
    module: Vec<String>,
}

impl Scan {
    fn block(&mut self, tokens: TokenStream, place: ScanPlace) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut item = place;
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += match token {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    self.attribute(&tokens[at..], &mut item, place)
                }
                TokenTree::Ident(_) => self.word(&tokens, at, item),
                TokenTree::Group(group) => {
                    self.block(group.stream(), ScanPlace { is_module: false, ..item });
                    1
                }
                TokenTree::Literal(_) => {
                    self.literals(token, item);
                    1
                }
                TokenTree::Punct(_) => 1,
            };
            if ends_item(tokens.get(at.saturating_sub(1))) {
                item.in_test = place.in_test || (item.in_test && inner_test(&tokens));
            }
        }
    }

    /// Reads `#[…]` or `#![…]` and says how many tokens it took; all lines of a doc comment at once.
    fn attribute(&mut self, tokens: &[TokenTree], item: &mut ScanPlace, place: ScanPlace) -> usize {
        let inner = usize::from(is_punct(tokens.get(1), '!'));
        let Some(TokenTree::Group(group)) = tokens.get(1 + inner) else { return 1 };
        let line = line_of(&tokens[0]);
        if let Some(text) = doc_text(group) {
            self.facts.doc_beginnings.push(DocBeginning { text, line });
            return doc_length(tokens);
        }
        self.literals(&tokens[1 + inner], *item);
        if is_test_attribute(group) {
            item.in_test = true;
            if !place.in_test {
                self.facts.first_test_line.get_or_insert(line);
            }
        }
        if let Some(TokenTree::Ident(name)) = group.stream().into_iter().next() {
            self.mention(vec![name.to_string()], MentionForm::Attribute, line, item.in_test);
        }
        2 + inner
    }

    /// Keeps the literals of `token`, which is one or a group.
    fn literals(&mut self, token: &TokenTree, item: ScanPlace) {
        match token {
            TokenTree::Literal(literal) if !item.in_test => self.facts.literals.push(literal.to_string()),
            TokenTree::Group(group) => {
                group.stream().into_iter().for_each(|token| self.literals(&token, item));
            }
            _ => {}
        }
    }

    /// Reads what begins with the word at `at` and says how many tokens it took.
    fn word(&mut self, tokens: &[TokenTree], at: usize, item: ScanPlace) -> usize {
        let word = tokens[at].to_string();
        if let Some(name) = type_name(&tokens[at..], &word, item) {
            self.facts.types.push(TypeItem { name, line: line_of(&tokens[at]), in_test: item.in_test });
            return 2;
        }
        match (word.as_str(), tokens.get(at + 1)) {
            ("fn", Some(TokenTree::Ident(name))) => self.function(&tokens[at..], &name.to_string(), item),
            ("mod", Some(TokenTree::Ident(name))) => self.module(&tokens[at..], name.to_string(), item),
            ("pub", Some(next)) if item.is_module && !item.in_test => {
                self.facts.public_items += usize::from(is_item_word(&next.to_string()));
                1
            }
            _ => self.path(tokens, at, item),
        }
    }

    fn function(&mut self, tokens: &[TokenTree], name: &str, item: ScanPlace) -> usize {
        let is_body = |token: &&TokenTree| is_braces(token) || is_punct(Some(token), ';');
        if let Some(TokenTree::Group(body)) = tokens.iter().find(is_body) {
            let line = line_of(&tokens[0]);
            let lines = body.span_close().end().line - line + 1;
            let function = FunctionItem { name: name.to_owned(), line, lines, in_test: item.in_test };
            self.facts.functions.push(function);
        }
        2
    }

    fn module(&mut self, tokens: &[TokenTree], name: String, item: ScanPlace) -> usize {
        let line = line_of(&tokens[0]);
        self.facts.modules.push(Module { name: name.clone(), line });
        let Some(TokenTree::Group(body)) = tokens.get(2) else { return 2 };
        self.module.push(name);
        self.block(body.stream(), ScanPlace { is_module: true, ..item });
        self.module.pop();
        3
    }

    fn path(&mut self, tokens: &[TokenTree], at: usize, item: ScanPlace) -> usize {
        let mut path = Vec::new();
        let taken = self.segments(&tokens[at..], &mut path, item);
        let next = tokens.get(at + taken);
        let is_call = matches!(tokens.get(at + taken + 1), Some(TokenTree::Group(_)));
        let form = if is_punct(next, '!') && is_call {
            MentionForm::Macro
        } else if at > 0 && is_punct(tokens.get(at - 1), '.') {
            MentionForm::Method
        } else {
            MentionForm::Path
        };
        if !path.is_empty() {
            self.mention(path, form, line_of(&tokens[at]), item.in_test);
        }
        taken
    }

    /// Collects `a::b::c`; a `{…}` after a `::` is a list of paths below, each mentioned by itself.
    fn segments(&mut self, tokens: &[TokenTree], path: &mut Vec<String>, item: ScanPlace) -> usize {
        let mut taken = 0;
        loop {
            match tokens.get(taken) {
                Some(TokenTree::Ident(name)) => path.push(plain(&name.to_string())),
                Some(TokenTree::Group(list)) if taken > 0 && is_braces(&tokens[taken]) => {
                    self.list(list, path, item);
                    path.clear();
                    return taken + 1;
                }
                _ => return taken,
            }
            taken += 1;
            if !is_path_separator(&tokens[taken..]) {
                return taken;
            }
            taken += 2;
        }
    }

    /// Reads the list of a `use`, whose paths all begin with `prefix`.
    fn list(&mut self, list: &Group, prefix: &[String], item: ScanPlace) {
        let tokens: Vec<TokenTree> = list.stream().into_iter().collect();
        for entry in tokens.split(|token| is_punct(Some(token), ',')) {
            let Some(first) = entry.first() else { continue };
            let mut path = prefix.to_vec();
            self.segments(entry, &mut path, item);
            if !path.is_empty() {
                self.mention(path, MentionForm::Path, line_of(first), item.in_test);
            }
        }
    }

    fn mention(&mut self, path: Vec<String>, form: MentionForm, line: usize, in_test: bool) {
        let path = self.resolve(path);
        self.facts.mentions.push(Mention { path, form, line, in_test });
    }

    /// Turns `self::x` and `super::x` into `crate::…::x`.
    fn resolve(&self, path: Vec<String>) -> Vec<String> {
        if path.len() < 2 || !matches!(path[0].as_str(), "self" | "super") {
            return path;
        }
        let ups = path.iter().filter(|segment| *segment == "super").count();
        let kept = self.module.len().saturating_sub(ups);
        let rest = path.into_iter().filter(|segment| !matches!(segment.as_str(), "self" | "super"));
        std::iter::once("crate".to_owned()).chain(self.module[..kept].iter().cloned()).chain(rest).collect()
    }
}

/// The name of the type that begins with `word`, the first of `tokens`.
fn type_name(tokens: &[TokenTree], word: &str, item: ScanPlace) -> Option<String> {
    let is_type = match word {
        "struct" | "enum" | "trait" => true,
        // A name as well: only what has fields is one.
        "union" => tokens.get(2).is_some_and(is_braces) || is_punct(tokens.get(2), '<'),
        // In an `impl` or a `trait` it is an associated type.
        "type" => item.is_module,
        _ => false,
    };
    match tokens.get(1) {
        Some(TokenTree::Ident(name)) if is_type => Some(plain(&name.to_string())),
        _ => None,
    }
}

/// The line that `group` is of a doc comment: the tokens of `/// a` are those of `#[doc = " a"]`.
fn doc_text(group: &Group) -> Option<String> {
    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    let [TokenTree::Ident(name), equals, TokenTree::Literal(text)] = tokens.as_slice() else { return None };
    let is_doc = *name == "doc" && is_punct(Some(equals), '=');
    is_doc.then(|| text.to_string().trim_matches('"').trim().to_owned())
}

/// How many of `tokens` are the lines of one doc comment.
fn doc_length(tokens: &[TokenTree]) -> usize {
    let inner = usize::from(is_punct(tokens.get(1), '!'));
    let is_doc_line = |line: &&[TokenTree]| {
        let group = line.get(1 + inner);
        is_punct(line.first(), '#')
            && matches!(group, Some(TokenTree::Group(group)) if doc_text(group).is_some())
    };
    tokens.chunks(2 + inner).take_while(is_doc_line).count() * (2 + inner)
}

/// Whether `token` ends an item: a `;` or the closing brace of a body.
fn ends_item(token: Option<&TokenTree>) -> bool {
    is_punct(token, ';') || token.is_some_and(is_braces)
}

/// Whether a run of tokens says of itself, with `#![cfg(test)]`, that it is a test.
fn inner_test(tokens: &[TokenTree]) -> bool {
    tokens.windows(3).any(|window| {
        let [hash, bang, TokenTree::Group(group)] = window else { return false };
        is_punct(Some(hash), '#') && is_punct(Some(bang), '!') && is_test_attribute(group)
    })
}

fn is_test_attribute(group: &Group) -> bool {
    let text: String = group.stream().to_string().split_whitespace().collect();
    text == "test" || text == "cfg(test)" || text.starts_with("cfg(all(test,")
}

fn is_item_word(word: &str) -> bool {
    const WORDS: [&str; 10] =
        ["fn", "struct", "enum", "union", "trait", "type", "const", "static", "unsafe", "async"];
    WORDS.contains(&word)
}

fn is_path_separator(tokens: &[TokenTree]) -> bool {
    let joint = matches!(tokens.first(), Some(TokenTree::Punct(punct)) if punct.spacing() == Spacing::Joint);
    joint && is_punct(tokens.first(), ':') && is_punct(tokens.get(1), ':')
}

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

fn is_braces(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

fn line_of(token: &TokenTree) -> usize {
    token.span().start().line
}

/// A name without the `r#` of a raw identifier.
fn plain(name: &str) -> String {
    name.strip_prefix("r#").unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str) -> SourceFacts {
        facts(text, &["rbt".to_owned(), "read".to_owned()], false).unwrap()
    }

    fn said(facts: &SourceFacts, form: MentionForm) -> Vec<String> {
        let mentions = facts.mentions.iter().filter(|mention| mention.form == form);
        mentions.map(|mention| mention.path.join("::")).collect()
    }

    #[test]
    fn use_lists_are_flattened_and_relative_paths_resolved() {
        let facts =
            scan("use std::{fs, io::{self, Read}};\nuse super::super::phpspy::{A, b::C};\nuse self::d::E;");
        let paths = said(&facts, MentionForm::Path);
        for wanted in
            ["std::fs", "std::io::Read", "crate::phpspy::A", "crate::phpspy::b::C", "crate::rbt::read::d::E"]
        {
            assert!(paths.iter().any(|path| path == wanted), "{wanted} not in {paths:?}");
        }
    }

    #[test]
    fn macros_and_methods_are_told_apart_and_seen_inside_macro_arguments() {
        let facts = scan("fn f() { std::println!(\"{}\", g().unwrap()); if a != (b) {} }");
        assert_eq!(said(&facts, MentionForm::Macro), ["std::println"]);
        assert_eq!(said(&facts, MentionForm::Method), ["unwrap"]);
    }

    #[test]
    fn what_stands_in_comments_and_strings_is_not_said() {
        let facts = scan("//! std::fs::read\n/// `x.unwrap()`\nconst A: &str = \"std::env::var\";");
        assert!(facts.mentions.iter().all(|mention| !mention.path.contains(&"std".to_owned())));
        assert!(said(&facts, MentionForm::Method).is_empty());
    }

    #[test]
    fn tests_are_marked_and_what_follows_them_is_not() {
        let facts = scan("#[cfg(test)]\nmod tests { fn a() { x.unwrap() } }\nfn b() { y.expect(1) }");
        assert_eq!(facts.first_test_line, Some(1));
        let marks: Vec<_> =
            facts.functions.iter().map(|function| (function.name.as_str(), function.in_test)).collect();
        assert_eq!(marks, [("a", true), ("b", false)]);
        let unwrap = facts.mentions.iter().find(|mention| mention.ends_with(&["unwrap"])).unwrap();
        assert!(unwrap.in_test);
        let expect = facts.mentions.iter().find(|mention| mention.ends_with(&["expect"])).unwrap();
        assert!(!expect.in_test);
    }

    #[test]
    fn a_file_that_calls_itself_a_test_is_one() {
        let facts = scan("#![cfg(test)]\nuse a::b;\nfn f() {}\nfn g() { x.unwrap() }");
        assert!(facts.functions.iter().all(|function| function.in_test));
    }

    #[test]
    fn functions_are_measured_from_their_name_to_their_brace() {
        let facts = scan(
            "/// Doc.\n#[inline]\npub fn f(\n  a: u8,\n) -> [u8; 2] {\n  [a, a]\n}\ntrait T { fn g(); }",
        );
        assert_eq!(facts.functions.len(), 1);
        assert_eq!((facts.functions[0].line, facts.functions[0].lines), (3, 5));
    }

    #[test]
    fn types_are_items_and_no_associated_types() {
        let facts = scan(
            "pub struct A<T>(T);\nenum B { C }\ntrait D { type E; }\nimpl D for A { type E = u8; }\ntype F = u8;\n\
             union G { a: u8 }\nfn f() { struct H; let union = 1; }\n#[cfg(test)]\nmod tests { struct I; }",
        );
        let product = facts.types.iter().filter(|item| !item.in_test);
        assert_eq!(product.map(|item| item.name.as_str()).collect::<String>(), "ABDFGH");
        assert_eq!(facts.types.len(), 7);
    }

    #[test]
    fn doc_comments_are_known_by_their_first_lines() {
        let facts = scan(
            "//! First.\n//! More.\n\n/// What \"it\" is.\n///\n/// The same.\n#[inline]\nfn f() {}\n// What?\n",
        );
        let found: Vec<_> = facts.doc_beginnings.iter().map(|doc| (doc.text.as_str(), doc.line)).collect();
        assert_eq!(found, [("First.", 1), ("What \\\"it\\\" is.", 4)]);
        assert_eq!(said(&facts, MentionForm::Attribute), ["inline"]);
    }

    #[test]
    fn public_items_are_those_of_modules_without_restriction() {
        let facts = scan(
            "pub struct A { pub a: u8 }\npub(crate) fn b() {}\nimpl A { pub fn c() {} }\npub use x::Y;\npub mod m { pub const D: u8 = 1; }\npub trait E { fn f(); }",
        );
        assert_eq!(facts.public_items, 3);
        assert_eq!(facts.modules.len(), 1);
    }
}
