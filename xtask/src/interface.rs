//! The public interface of the crates that programs depend on, as a list under version control: whoever changes it sees that.

mod examples;

use std::fs;
use std::path::Path;
use std::str::FromStr as _;

use anyhow::{Context, Result, bail};
use proc_macro2::{Delimiter, Punct, Spacing, TokenStream, TokenTree};

use crate::tidy;

/// The list.
const LIST: &str = "docs/interface.txt";

/// The crates that programs depend on, and the one whose types are in all their signatures.
const CRATES: [&str; 4] = ["borehole", "model", "recorder", "tokio"];

/// Writes the list.
///
/// # Errors
/// When a source cannot be read, or the list not be written.
pub(crate) fn write(root: &Path) -> Result<()> {
    fs::write(root.join(LIST), list(root)?).with_context(|| LIST.to_owned())
}

/// Checks that the list is that of the sources, and that examples show what programs call.
///
/// # Errors
/// When it is not, they do not, or a source cannot be read.
pub(crate) fn check(root: &Path) -> Result<()> {
    let missing = examples::missing(root)?;
    if !missing.is_empty() {
        bail!("no example in the documentation shows\n  {}", missing.join("\n  "));
    }
    let (kept, found) = (fs::read_to_string(root.join(LIST)).unwrap_or_default(), list(root)?);
    if kept == found {
        return Ok(());
    }
    for line in found.lines().filter(|line| !kept.lines().any(|kept| kept == *line)) {
        println!("+{line}");
    }
    for line in kept.lines().filter(|line| !found.lines().any(|found| found == *line)) {
        println!("-{line}");
    }
    bail!(
        "the public interface differs from {LIST}; `cargo xtask interface` writes it, CHANGELOG.md tells users"
    )
}

fn list(root: &Path) -> Result<String> {
    let mut text = String::new();
    for name in CRATES {
        for file in tidy::rust_files(&root.join("crates").join(name).join("src"))? {
            let source = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
            let tokens = TokenStream::from_str(&source).map_err(|error| anyhow::anyhow!("{error}"))?;
            let mut items = Vec::new();
            public_items(tokens, "", false, &mut items);
            if !items.is_empty() {
                let place = file.strip_prefix(root).unwrap_or(&file);
                text += &format!("\n{}\n", place.display());
                items.iter().for_each(|item| text += &format!("    {item}\n"));
            }
        }
    }
    Ok(text.trim_start().to_owned())
}

/// Adds the public items of a module, and those of its blocks behind the words that begin them, such as `impl Input`. Tests have
/// none. With `are_public`, all items are: variants, and those of traits.
fn public_items(tokens: TokenStream, outer: &str, are_public: bool, items: &mut Vec<String>) {
    let mut words: Vec<TokenTree> = Vec::new();
    // The last field of a struct may lack its comma.
    let end = TokenTree::Punct(Punct::new(';', Spacing::Alone));
    let mut depth = 0;
    for token in tokens.into_iter().chain([end]) {
        depth += nesting(&token, words.last());
        let is_block = matches!(&token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
        let is_end =
            depth <= 0 && matches!(&token, TokenTree::Punct(punct) if ";,".contains(punct.as_char()));
        if !is_block && !is_end {
            words.push(token);
            continue;
        }
        let head = without_attributes(&words);
        let text = spelled(&head);
        let is_public =
            text.starts_with("pub ") && !text.starts_with("pub (") || (are_public && !text.is_empty());
        let item = if is_end || text.starts_with("pub use") { text.clone() } else { format!("{text} {{}}") };
        if is_public {
            let inner = match &token {
                TokenTree::Group(group) if text.starts_with("pub use") => format!(" {{{}}}", group.stream()),
                _ => String::new(),
            };
            items.push(format!("{outer}{item}{inner}"));
        }
        let holds_items = is_public && !text.contains("fn ") && !text.starts_with("pub use");
        if let TokenTree::Group(group) = token
            && (holds_items || text.starts_with("impl"))
        {
            let outer = if is_public { format!("{outer}  ") } else { format!("{outer}{text}: ") };
            let are_public = text.starts_with("pub trait") || text.starts_with("pub enum");
            public_items(group.stream(), &outer, are_public, items);
        }
        words.clear();
        depth = 0;
    }
}

/// How much deeper `token` goes into the arguments of a type; an arrow does not.
fn nesting(token: &TokenTree, before: Option<&TokenTree>) -> i32 {
    let is_shift = before.is_some_and(|before| matches!(before, TokenTree::Literal(_)));
    let is_arrow = || matches!(before, Some(TokenTree::Punct(punct)) if "-=".contains(punct.as_char()));
    match token {
        TokenTree::Punct(punct) if punct.as_char() == '<' && !is_shift => 1,
        TokenTree::Punct(punct) if punct.as_char() == '>' && !is_arrow() => -1,
        _ => 0,
    }
}

/// The tokens without attributes and documentation.
fn without_attributes(words: &[TokenTree]) -> Vec<TokenTree> {
    let mut kept = Vec::new();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        if matches!(word, TokenTree::Punct(punct) if punct.as_char() == '#') {
            words.next_if(|next| matches!(next, TokenTree::Punct(punct) if punct.as_char() == '!'));
            words.next();
        } else {
            kept.push(word.clone());
        }
    }
    kept
}

/// Tokens as text, with a space between words only.
fn spelled(tokens: &[TokenTree]) -> String {
    let mut text = String::new();
    let mut is_glued = true;
    for token in tokens {
        let is_word = !matches!(token, TokenTree::Punct(_));
        if !is_glued && is_word {
            text.push(' ');
        }
        text += &token.to_string();
        is_glued = matches!(token, TokenTree::Punct(punct) if punct.spacing() == Spacing::Joint || "<&'".contains(punct.as_char()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_public_is_listed_with_the_block_that_holds_it() {
        let source = "/// Docs.\n#[derive(Debug)]\npub struct A { /// x\n pub x: B<u8, u8>, y: u8, pub z: u8 }\nimpl A { pub fn f(&self) -> u8 { 1 } fn g() {} }\
                      \npub(crate) fn h() {}\n#[cfg(test)] mod tests { pub fn t() {} }\npub enum V { One, Two(u8) }\npub trait T { fn f(&self) {} }\npub use b::{C, D};\npub const E: u8 = 1;";
        let mut items = Vec::new();
        public_items(TokenStream::from_str(source).unwrap(), "", false, &mut items);
        let expected = [
            "pub struct A {}",
            "  pub x: B<u8, u8>",
            "  pub z: u8",
            "impl A: pub fn f (& self)-> u8 {}",
            "pub enum V {}",
            "  One",
            "  Two (u8)",
            "pub trait T {}",
            "  fn f (& self) {}",
            "pub use b:: {C , D}",
            "pub const E: u8= 1",
        ];
        assert_eq!(items, expected);
    }
}
