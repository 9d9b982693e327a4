//! Mapping of paths to those of another machine.

use std::borrow::Cow;

/// Replaces prefixes of paths. The longest matching prefix applies.
///
/// # Examples
///
/// ```
/// use borehole_analysis::PathMap;
///
/// let map = PathMap::new(["/app=/home/me/shop", "/app/vendor="].iter().map(|rule| PathMap::rule(rule).unwrap()));
/// assert_eq!(&*map.apply(b"/app/src/Db.php"), b"/home/me/shop/src/Db.php");
/// assert_eq!(&*map.apply(b"/app/vendor/autoload.php"), b"/autoload.php");
/// assert_eq!(&*map.apply(b"/srv/app/x.php"), b"/srv/app/x.php");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathMap {
    /// The longest prefix first.
    rules: Vec<(Vec<u8>, Vec<u8>)>,
}

impl PathMap {
    /// Creates a map of rules, each a prefix and its replacement.
    pub fn new(rules: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) -> Self {
        let mut rules: Vec<_> = rules.into_iter().collect();
        rules.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
        Self { rules }
    }

    /// Parses a rule `FROM=TO`, in which `TO` may be empty. `None` if it has another form.
    #[must_use]
    pub fn rule(text: &str) -> Option<(Vec<u8>, Vec<u8>)> {
        let (from, to) = text.split_once('=').filter(|(from, _)| !from.is_empty())?;
        Some((from.into(), to.into()))
    }

    /// Whether there are no rules.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Maps a path.
    #[must_use]
    pub fn apply<'p>(&self, path: &'p [u8]) -> Cow<'p, [u8]> {
        let fitting = self.rules.iter().find_map(|(from, to)| Some((path.strip_prefix(&**from)?, to)));
        match fitting {
            Some((rest, to)) => Cow::Owned([to, rest].concat()),
            None => Cow::Borrowed(path),
        }
    }
}
