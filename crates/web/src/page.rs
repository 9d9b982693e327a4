//! The frame of a page: its parts, and what reports and diffs have in common.

use borehole_text::{grouped, markup};

/// The style and the script of a kind of page. `cargo xtask web` makes them from the sources in `web/`.
pub(crate) struct PageCode {
    style: &'static str,
    script: &'static str,
    /// The checksums for the content security policy, which allows nothing else.
    style_checksum: &'static str,
    script_checksum: &'static str,
}

impl PageCode {
    /// For profiles, diffs and heaps.
    pub(crate) const PROFILE: Self = Self {
        style: include_str!("assets/profile.css"),
        script: include_str!("assets/profile.js"),
        style_checksum: include_str!("assets/profile.css.checksum"),
        script_checksum: include_str!("assets/profile.js.checksum"),
    };

    /// For traces of Tokio programs.
    pub(crate) const TOKIO: Self = Self {
        style: include_str!("assets/tokio.css"),
        script: include_str!("assets/tokio.js"),
        style_checksum: include_str!("assets/tokio.css.checksum"),
        script_checksum: include_str!("assets/tokio.js.checksum"),
    };

    /// The head of a page: a policy, the title as markup, and the style. Where the browser knows trusted types, the policy also
    /// keeps the script from making markup of texts.
    pub(crate) fn head(&self, title: &str) -> String {
        let Self { style, style_checksum, script_checksum, .. } = self;
        format!(
            r#"<!doctype html>
<html lang="en" class="no-script">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src '{script_checksum}'; style-src '{style_checksum}'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
"#
        )
    }

    /// The end of a page: the data, which is JSON that nothing in it can end, and the script.
    pub(crate) fn tail(&self, data: &str) -> String {
        format!(
            "<script type=\"application/json\" id=\"data\">{data}</script>\n<script>{}</script>\n</body>\n</html>\n",
            self.script
        )
    }
}

/// The last line of every page.
pub(crate) const FOOTER: &str =
    "<footer>Made by Borehole. This file contains all of its data and makes no network requests.</footer>\n";

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
        let mut html = PageCode::PROFILE.head(&title);
        html.push_str(&format!(
            r#"<body>
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
        ));
        html.push_str(&self.times);
        html.push_str(&self.work());
        html.push_str("</main>\n");
        html.push_str(FOOTER);
        html.push_str(&PageCode::PROFILE.tail(&self.data));
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
    fn the_browser_is_told_what_the_style_and_the_script_are() {
        let checksum = |text: &str| format!("sha256-{}", base64(&Sha256::digest(text.as_bytes())));
        for code in [PageCode::PROFILE, PageCode::TOKIO] {
            assert_eq!(code.style_checksum, checksum(code.style), "`cargo xtask web` makes both");
            assert_eq!(code.script_checksum, checksum(code.script), "`cargo xtask web` makes both");
            assert!(!code.script.contains("</script") && !code.script.contains("<!--"));
            assert!(!code.style.contains("</style"));
        }
    }

    #[test]
    fn the_script_has_no_way_to_reach_the_network() {
        for PageCode { script, style, .. } in [PageCode::PROFILE, PageCode::TOKIO] {
            for way in
                ["fetch(", "XMLHttpRequest", "WebSocket", "EventSource", "sendBeacon", "import(", "url("]
            {
                assert!(!script.contains(way) && !style.contains(way), "{way}");
            }
            for way in ["insertAdjacentHTML", "document.write", "eval(", "new Function"] {
                assert!(!script.contains(way), "{way}");
            }
        }
    }
}
