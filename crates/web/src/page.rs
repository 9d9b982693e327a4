//! The frame of a page: its parts, and what reports and diffs have in common.

use borehole_text::{grouped, markup};

/// The style of all pages.
pub(crate) const STYLE: &str = include_str!("assets/page.css");

/// The script of all pages.
pub(crate) const SCRIPT: &str = concat!(
    "\"use strict\";\n",
    include_str!("assets/model.js"),
    include_str!("assets/show.js"),
    include_str!("assets/flame.js"),
    include_str!("assets/table.js"),
    include_str!("assets/times.js"),
    include_str!("assets/main.js"),
);

/// The hashes of the style and of the script for the content security policy, which allows nothing else. A test prints the
/// new hashes when they change.
const STYLE_HASH: &str = "sha256-QSzxwRdAP5bCw73jiAiNbZtVNoWioWLrrEsV41kD7/Y=";
const SCRIPT_HASH: &str = "sha256-yne/J47ofK8hOUcXCAqy5lbWISFodQSdJbEZxa3hRGQ=";

/// The labels of a page's boxes.
pub(crate) struct PageWords {
    /// The heading above them.
    title: &'static str,
    /// The buttons of their views.
    views: [&'static str; 3],
    search: &'static str,
    /// The label of all boxes for screen readers.
    label: &'static str,
    /// The result of a double click.
    both: &'static str,
    /// The labels of the keys for the first two views.
    keys: [&'static str; 2],
}

impl PageWords {
    /// The labels for profiles.
    pub(crate) const CALLS: Self = Self {
        title: "Calls",
        views: ["From roots", "Inverted", "Sandwich"],
        search: "Search functions and files",
        label: "Flame graph: arrow keys move between calls, Enter zooms, Escape zooms out, Space shows callers and callees",
        both: "callers and callees",
        keys: ["calls", "invert"],
    };

    /// The labels for heaps.
    pub(crate) const HEAP: Self = Self {
        title: "Retained memory",
        views: ["From roots", "By shallow size", "One class or name"],
        search: "Search classes and names",
        label: "Retained memory: arrow keys move between blocks, Enter zooms, Escape zooms out, Space shows holders and contents",
        both: "holders and contents",
        keys: ["from roots", "by shallow size"],
    };
}

impl Default for PageWords {
    fn default() -> Self {
        Self::CALLS
    }
}

/// The contents of a page.
#[derive(Default)]
pub(crate) struct PageParts {
    pub(crate) title: String,
    pub(crate) about: String,
    pub(crate) words: PageWords,
    /// Numbers in large letters, each with its label.
    pub(crate) facts: Vec<(String, String)>,
    /// Notes that explain the numbers.
    pub(crate) notes: Vec<String>,
    /// The sections above the flame graph, as markup.
    pub(crate) times: String,
    /// The legend of the colours, as markup.
    pub(crate) key: String,
    /// Whether the table needs the full width.
    pub(crate) is_wide: bool,
    /// The table without its frame, as markup.
    pub(crate) table: String,
    pub(crate) table_title: String,
    pub(crate) table_count: String,
    pub(crate) data: String,
}

impl PageParts {
    pub(crate) fn html(&self) -> String {
        let title = markup(&self.title);
        let facts: String = self
            .facts
            .iter()
            .map(|(what, much)| format!("<div><dt>{}</dt><dd>{}</dd></div>", markup(what), markup(much)))
            .collect();
        let notes: String = self.notes.iter().map(|note| format!("<li>{}</li>", markup(note))).collect();
        let mut html = format!(
            r#"<!doctype html>
<html lang="en" class="no-script">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '{SCRIPT_HASH}'; style-src '{STYLE_HASH}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<div><h1>{title}</h1><p>{about}</p></div>
<button id="theme" type="button" class="needs-script" aria-pressed="false">Dark</button>
</header>
<main>
<dl class="facts">{facts}</dl>
<ul class="notes">{notes}</ul>
<noscript><p class="hint">Without scripts, this page shows only the table.</p></noscript>
"#,
            about = markup(&self.about),
        );
        html.push_str(&self.times);
        html.push_str(&self.work());
        html.push_str("</main>\n<footer>Made by Borehole. This file contains all of its data and makes no network requests.</footer>\n");
        html.push_str("<script type=\"application/json\" id=\"data\">");
        html.push_str(&self.data);
        html.push_str("</script>\n<script>");
        html.push_str(SCRIPT);
        html.push_str("</script>\n</body>\n</html>\n");
        html
    }

    fn work(&self) -> String {
        format!(
            r#"<div class="work{beside}">
<section class="needs-script" aria-labelledby="flame-title">
<div class="bar">
<h2 id="flame-title">{flame_title}</h2>
<span id="dimensions" class="bar"></span>
<span class="bar" role="group" aria-label="View">
<button type="button" data-mode="calls" aria-pressed="true">{from_roots}</button>
<button type="button" data-mode="inverted" aria-pressed="false">{inverted}</button>
<button type="button" data-mode="sandwich" id="sandwich" aria-pressed="false" disabled>{sandwich}</button>
</span>
<button type="button" id="zoom-out" hidden>Zoom out</button>
<input type="search" id="search" placeholder="{search}" aria-label="{search}">
<span id="matches" class="hint" role="status"></span>
</div>
{key}
<div id="flame" class="flame" tabindex="0" role="tree" aria-label="{label}">
<div id="boxes" class="boxes" role="presentation"></div>
</div>
<p id="status" class="status" role="status"></p>
<p class="hint"><kbd>/</kbd> search &nbsp; <kbd>i</kbd> {invert} &nbsp; <kbd>c</kbd> {calls} &nbsp; click zooms &nbsp; double click: {both} &nbsp; <kbd>←</kbd> <kbd>↑</kbd> <kbd>↓</kbd> <kbd>→</kbd> <kbd>Enter</kbd> <kbd>Space</kbd> <kbd>Esc</kbd><span id="chosen" role="status"></span></p>
</section>
<section aria-labelledby="top-title">
<div class="bar"><h2 id="top-title">{title}</h2><span id="top-count" class="hint">{count}</span></div>
<div class="rows">{table}</div>
</section>
</div>
"#,
            flame_title = self.words.title,
            from_roots = self.words.views[0],
            inverted = self.words.views[1],
            sandwich = self.words.views[2],
            search = self.words.search,
            label = self.words.label,
            both = self.words.both,
            calls = self.words.keys[0],
            invert = self.words.keys[1],
            beside = if self.is_wide { "" } else { " beside" },
            key = self.key,
            title = markup(&self.table_title),
            count = markup(&self.table_count),
            table = self.table,
        )
    }
}

/// The top table: sortable columns of numbers, and the column `name`.
pub(crate) fn top_table(head: &str, name: &str, rows: impl Iterator<Item = String>) -> String {
    format!(
        r#"<table><thead><tr>{head}<th scope="col">{name}</th></tr></thead><tbody id="top-rows">
{}</tbody></table>"#,
        rows.collect::<String>()
    )
}

/// A column heading that sorts by the column.
pub(crate) fn heading(sort: usize, text: &str) -> String {
    format!(r#"<th scope="col"><button type="button" data-sort="{sort}">{text}</button></th>"#)
}

/// The file beside a function's name in a table, which distinguishes functions of one name.
pub(crate) fn beside(file: Option<&str>) -> String {
    file.map(|file| format!(" <small>{}</small>", markup(file))).unwrap_or_default()
}

/// The note for a table that does not hold all rows.
pub(crate) fn cut_table(held: usize, of: usize, what: &str) -> Option<String> {
    (held < of).then(|| {
        let (held, of) = (grouped(held as u64), grouped(of as u64));
        format!("The table has {held} of {of} {what}: the largest ones by each of its columns.")
    })
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;

    fn base64(bytes: &[u8]) -> String {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let digits = bytes.chunks(3).flat_map(|chunk| {
            let bits =
                (0..3).fold(0_u32, |bits, at| bits << 8 | u32::from(chunk.get(at).copied().unwrap_or(0)));
            (0..4).map(move |at| {
                if at > chunk.len() { '=' } else { char::from(DIGITS[(bits >> (18 - 6 * at) & 63) as usize]) }
            })
        });
        digits.collect()
    }

    #[test]
    fn the_browser_is_told_what_the_style_and_the_program_are() {
        let hash = |text: &str| format!("sha256-{}", base64(&Sha256::digest(text.as_bytes())));
        assert_eq!(STYLE_HASH, hash(STYLE), "the style has changed");
        assert_eq!(SCRIPT_HASH, hash(SCRIPT), "the program has changed");
        assert!(!SCRIPT.contains("</script") && !STYLE.contains("</style"));
    }

    #[test]
    fn the_program_has_no_way_to_make_markup_of_names() {
        for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"]
        {
            assert!(!SCRIPT.contains(way), "{way}");
        }
        for way in ["http:", "https:", "fetch(", "XMLHttpRequest", "WebSocket", "import("] {
            assert!(!SCRIPT.contains(way) && !STYLE.contains(way), "{way}");
        }
    }
}
