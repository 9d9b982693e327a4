//! The page of a Tokio trace.

use borehole_analysis::tokio::{PageFlag, TokioPage};
use borehole_text::{document, markup};
use serde::Serialize;

use crate::json::in_script;
use crate::page::PageTexts;

/// The data of the page.
#[derive(Serialize)]
struct TokioData<'p> {
    kind: &'static str,
    title: &'p str,
    programs: &'p [TokioPage],
}

/// One HTML file that shows what the programs of a Tokio trace did, each by itself: workers and their polls over time, queues,
/// spans, tasks, stacks and red flags. Its size is that of the views, which is bounded.
///
/// `title` may be any text.
#[must_use]
pub fn tokio_html(programs: &[TokioPage], title: &str) -> String {
    let texts = PageTexts {
        title: document(title.as_bytes()),
        about: "What a Tokio program did".to_owned(),
        facts: Vec::new(),
        notes: Vec::new(),
    };
    texts.html(&programs.iter().map(flags).collect::<String>(), &tokio_json(programs, title))
}

/// The data of such a page as JSON, for an application that gets them from a server.
#[must_use]
pub fn tokio_json(programs: &[TokioPage], title: &str) -> String {
    in_script(&TokioData { kind: "tokio", title: &document(title.as_bytes()), programs })
}

/// The red flags for browsers without scripts.
fn flags(program: &TokioPage) -> String {
    let of = program.report.source.as_deref().map(|name| format!(" of {}", document(name.as_bytes())));
    let rows = program.flags.iter().map(|PageFlag { severity, check, evidence, .. }| {
        let evidence = document(evidence.as_bytes());
        format!("<li>{} {}: {}</li>\n", severity.name(), markup(check), markup(&evidence))
    });
    let title = format!("Red flags{}", of.unwrap_or_default());
    format!("<section><h2>{}</h2>\n<ol>\n{}</ol></section>\n", markup(&title), rows.collect::<String>())
}

#[cfg(test)]
mod tests {
    use borehole_analysis::tokio::Severity;

    use super::*;

    #[test]
    fn flags_are_readable_without_scripts_whatever_their_names() {
        let flag = PageFlag {
            severity: Severity::Critical,
            check: "long-poll",
            evidence: "spawned at </script><script>x\u{202e}".to_owned(),
            time_ns: Some(1),
            worker: None,
            task: None,
        };
        let page = TokioPage { flags: vec![flag], places: vec!["<!--".to_owned()], ..TokioPage::default() };
        let html = tokio_html(&[page], "a & b");
        assert!(html.contains("<title>a &amp; b</title>"));
        assert!(
            html.contains("<li>critical long-poll: spawned at &lt;/script&gt;&lt;script&gt;x\\u{202e}</li>")
        );
        assert!(html.contains(r#""places":["\u003c!--"]"#));
        assert_eq!(html.matches("</script>").count(), 2);
    }
}
