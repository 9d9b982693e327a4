//! Paths as they are on another machine.

use std::borrow::Cow;

/// Replaces the beginnings of paths. The longest that fits is taken.
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
    /// The longest first.
    rules: Vec<(Vec<u8>, Vec<u8>)>,
}

impl PathMap {
    /// A map of rules, each what a path begins with and what it is to begin with instead.
    pub fn new(rules: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) -> Self {
        let mut rules: Vec<_> = rules.into_iter().collect();
        rules.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
        Self { rules }
    }

    /// A rule as it is written: `FROM=TO`, of which `TO` may be empty. `None` if it is not of that form.
    #[must_use]
    pub fn rule(text: &str) -> Option<(Vec<u8>, Vec<u8>)> {
        let (from, to) = text.split_once('=').filter(|(from, _)| !from.is_empty())?;
        Some((from.into(), to.into()))
    }

    /// Whether it changes nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// A path under the map.
    #[must_use]
    pub fn apply<'p>(&self, path: &'p [u8]) -> Cow<'p, [u8]> {
        let fitting = self.rules.iter().find_map(|(from, to)| Some((path.strip_prefix(&**from)?, to)));
        match fitting {
            Some((rest, to)) => Cow::Owned([to, rest].concat()),
            None => Cow::Borrowed(path),
        }
    }
}
