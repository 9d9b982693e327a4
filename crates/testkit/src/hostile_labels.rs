//! Labels that nobody would choose, and that somebody may send.

/// Keys and values, each key once.
#[must_use]
pub fn hostile_labels() -> Vec<(String, String)> {
    let long = "x".repeat(64 << 10);
    let labels = [
        ("empty", ""),
        ("long", &long),
        ("nul", "a\0b"),
        ("nul\0key", "x"),
        ("quotes", "it's \"q\" `b` $x %s"),
        ("it's \"key\" `b`", "x"),
        ("lines", "a\nb\r\nc"),
        ("line\nkey", "x"),
        ("__proto__", "polluted"),
        ("constructor", "x"),
        ("Case", "upper"),
        ("case", "lower"),
        ("CASE", "UPPER"),
        ("back\\slash", "\\x00\\u0000\\"),
        ("esc\x1b[31m", "\x1b]0;title\x07\u{202e}"),
        ("comma, semicolon; --", "'; DROP TABLE samples; --"),
        ("label:key", "x"),
        ("service", "a label, no column"),
        ("key0", "a name of a query"),
        ("value", "a name of an answer"),
        (" ", " "),
        ("\u{1f9ea}", "\u{fffd}"),
    ];
    let mut labels: Vec<_> = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    labels.push((long, "of a long key".to_owned()));
    labels
}
