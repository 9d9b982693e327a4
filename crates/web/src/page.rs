//! The frame of a page: its head, what is readable without scripts, its data and its script.

use borehole_text::{grouped, markup};

use crate::json::{Object, list, text};

/// A style and a script. `cargo xtask web` makes them from the sources in `web/`.
pub(crate) struct PageCode {
    pub(crate) style: &'static str,
    pub(crate) script: &'static str,
    /// The checksums for the content security policy, which allows nothing else.
    style_checksum: &'static str,
    script_checksum: &'static str,
}

impl PageCode {
    /// For pages that hold their data.
    const PAGE: Self = Self {
        style: include_str!("assets/page.css"),
        script: include_str!("assets/page.js"),
        style_checksum: include_str!("assets/page.css.checksum"),
        script_checksum: include_str!("assets/page.js.checksum"),
    };

    /// For the explorer, which asks a server for data.
    pub(crate) const EXPLORER: Self = Self {
        style: include_str!("assets/explorer.css"),
        script: include_str!("assets/explorer.js"),
        style_checksum: include_str!("assets/explorer.css.checksum"),
        script_checksum: include_str!("assets/explorer.js.checksum"),
    };

    /// The head of a page: a policy, the title as markup, and the style. Where the browser knows trusted types, the policy also
    /// keeps the script from making markup of texts.
    fn head(&self, title: &str) -> String {
        let Self { style, style_checksum, script_checksum, .. } = self;
        format!(
            r#"<!doctype html>
<html lang="en">
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
    fn tail(&self, data: &str) -> String {
        format!(
            "<script type=\"application/json\" id=\"data\">{data}</script>\n<script>{}</script>\n</body>\n</html>\n",
            self.script
        )
    }
}

/// The texts of a page.
pub(crate) struct PageTexts {
    pub(crate) title: String,
    pub(crate) about: String,
    /// Numbers in large letters, each with its label.
    pub(crate) facts: Vec<(String, String)>,
    /// Notes that explain the numbers.
    pub(crate) notes: Vec<String>,
}

impl PageTexts {
    /// An object with these texts, to which the data of the page are added.
    pub(crate) fn object(&self) -> Object {
        let mut object = Object::new();
        object.text("title", &self.title).text("about", &self.about);
        object.raw("facts", &list(self.facts.iter().map(|(what, much)| list([text(what), text(much)]))));
        object.texts("notes", self.notes.iter().map(|note| &**note));
        object
    }

    /// A page with `data`, which the script shows in place of all else. `readable` is markup for browsers without scripts.
    pub(crate) fn html(&self, readable: &str, data: &str) -> String {
        let title = markup(&self.title);
        let facts: String = self
            .facts
            .iter()
            .map(|(what, much)| format!("<div><dt>{}</dt><dd>{}</dd></div>", markup(what), markup(much)))
            .collect();
        let notes: String = self.notes.iter().map(|note| format!("<li>{}</li>", markup(note))).collect();
        let mut html = PageCode::PAGE.head(&title.to_string());
        html.push_str(&format!(
            r#"<body>
<div id="app">
<header><div><h1>{title}</h1><p>{about}</p></div></header>
<main>
<noscript><p class="hint">Without scripts, this page shows no pictures.</p></noscript>
<dl class="facts">{facts}</dl>
<ul class="notes">{notes}</ul>
{readable}</main>
</div>
"#,
            about = markup(&self.about),
        ));
        html.push_str(&PageCode::PAGE.tail(data));
        html
    }
}

/// A section with a table: columns of numbers, and the column `name`.
pub(crate) fn table_section(
    title: &str,
    heads: &[&str],
    name: &str,
    rows: impl Iterator<Item = String>,
) -> String {
    let heads: String =
        heads.iter().chain([&name]).map(|head| format!(r#"<th scope="col">{head}</th>"#)).collect();
    format!(
        "<section><h2>{}</h2>\n<div class=\"rows\"><table><thead><tr>{heads}</tr></thead><tbody>\n{}</tbody></table></div></section>\n",
        markup(title),
        rows.collect::<String>()
    )
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
        for code in [PageCode::PAGE, PageCode::EXPLORER] {
            assert_eq!(code.style_checksum, checksum(code.style), "`cargo xtask web` makes both");
            assert_eq!(code.script_checksum, checksum(code.script), "`cargo xtask web` makes both");
            assert!(!code.script.contains("</script") && !code.script.contains("<!--"));
            assert!(!code.style.contains("</style"));
        }
    }

    #[test]
    fn the_script_of_a_page_has_no_way_to_reach_the_network() {
        let PageCode { script, style, .. } = PageCode::PAGE;
        for way in ["fetch(", "XMLHttpRequest", "WebSocket", "EventSource", "sendBeacon", "import(", "url("] {
            assert!(!script.contains(way) && !style.contains(way), "{way}");
        }
        for PageCode { script, .. } in [PageCode::PAGE, PageCode::EXPLORER] {
            for way in ["insertAdjacentHTML", "document.write", "eval(", "new Function"] {
                assert!(!script.contains(way), "{way}");
            }
        }
    }
}
