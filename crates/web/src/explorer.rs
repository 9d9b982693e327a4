//! The explorer: an application in the browser that asks a server for what it shows.

use crate::page::PageCode;

/// The script of the explorer, a file of its own.
pub const EXPLORER_SCRIPT: &str = PageCode::EXPLORER.script;

/// The style of the explorer, a file of its own.
pub const EXPLORER_STYLE: &str = PageCode::EXPLORER.style;

/// The document of the explorer, which loads its script and its style from these addresses. `readable` is markup for browsers
/// without scripts.
#[must_use]
pub fn explorer_html(script: &str, style: &str, readable: &str) -> String {
    format!(
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>Borehole</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{style}">
<script src="{script}" defer></script>
</head>
<body>
<div id="app"><noscript>{readable}</noscript></div>
</body>
</html>
"#
    )
}
