//! The generated part of the lake's documentation.

use std::fmt::Write as _;

use crate::functions;
use crate::tables::LakeTable;
use crate::views::VIEWS;

/// The tables, views and functions as Markdown: a part of `docs/lake.md`.
#[must_use]
pub fn page() -> String {
    let mut text = String::from("### Tables\n");
    for table in LakeTable::ALL {
        let description = table.description();
        let _ = write!(
            text,
            "\n**`{}`** — {}.\n\n| column | type | description |\n|---|---|---|\n",
            description.name, description.about
        );
        for column in description.columns {
            let _ = writeln!(text, "| `{}` | {} | {} |", column.name, column.kind.sql(), column.about);
        }
    }
    text.push_str("\n### Views\n\n| view | description |\n|---|---|\n");
    for view in VIEWS {
        let _ = writeln!(text, "| `{}` | {} |", view.name, view.about);
    }
    text.push_str("\n### Functions\n\n| function | description |\n|---|---|\n");
    for (usage, about) in functions::descriptions() {
        let _ = writeln!(text, "| `{usage}` | {about} |");
    }
    text
}
