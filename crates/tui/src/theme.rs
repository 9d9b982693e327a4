//! Colours.

use ratatui::style::{Color, Modifier, Style};

/// The colours that a terminal has, or that its user wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colours {
    /// None: text is bold, underlined or reversed.
    None,
    /// The palette of 256 colours.
    #[default]
    Indexed,
    /// 24-bit colours.
    True,
}

/// The purpose of a drawn text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextRole {
    Plain,
    /// Titles and bars.
    Bar,
    /// Less important text.
    Dim,
    /// The row of the cursor in the pane that has it.
    Cursor,
    /// The row of the cursor in another pane.
    Trace,
    /// The function in focus.
    Focus,
    /// Numbers.
    Number,
    /// Matches of the filter.
    Found,
    /// An increase.
    Grown,
    /// A decrease.
    Shrunk,
}

impl TextRole {
    /// The role of the cursor's row in a pane, which has the cursor or does not.
    pub(crate) const fn of_cursor(has_cursor: bool) -> Self {
        if has_cursor { Self::Cursor } else { Self::Trace }
    }
}

impl Colours {
    pub(crate) fn style(self, role: TextRole) -> Style {
        let plain = Style::default();
        let bold = plain.add_modifier(Modifier::BOLD);
        let reversed = plain.add_modifier(Modifier::REVERSED);
        match (role, self) {
            (TextRole::Plain, _) => plain,
            (TextRole::Cursor, Self::None) => reversed.add_modifier(Modifier::BOLD),
            (TextRole::Trace | TextRole::Found, Self::None) => plain.add_modifier(Modifier::UNDERLINED),
            (TextRole::Bar, Self::None) => reversed,
            (TextRole::Focus | TextRole::Grown, Self::None) => bold,
            (TextRole::Dim | TextRole::Number | TextRole::Shrunk, Self::None) => plain,
            (TextRole::Bar, _) => plain.fg(self.of([230, 230, 230])).bg(self.of([40, 60, 90])),
            (TextRole::Dim, _) => plain.fg(self.of([140, 140, 140])),
            (TextRole::Cursor, _) => bold.fg(self.of([255, 255, 255])).bg(self.of([0, 95, 175])),
            (TextRole::Trace, _) => plain.bg(self.of([58, 58, 58])).fg(self.of([238, 238, 238])),
            (TextRole::Focus, _) => bold.fg(self.of([255, 215, 0])),
            (TextRole::Number, _) => plain.fg(self.of([135, 175, 215])),
            (TextRole::Grown, _) => plain.fg(self.of([255, 110, 110])),
            (TextRole::Shrunk, _) => plain.fg(self.of([110, 160, 255])),
            (TextRole::Found, _) => bold.fg(self.of([0, 0, 0])).bg(self.of([215, 175, 255])),
        }
    }

    /// The style of a box: a warm colour that is always the same for a name; `is_odd` separates neighbours.
    pub(crate) fn flame(self, name: &[u8], is_odd: bool) -> Style {
        let hash = name
            .iter()
            .fold(0x811c_9dc5_u32, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619));
        let [first, second, third, _] = hash.to_be_bytes();
        let black = Style::default().fg(self.of([0, 0, 0]));
        match self {
            Self::None if is_odd => Style::default().add_modifier(Modifier::REVERSED),
            Self::None => Style::default(),
            _ => black.bg(self.of([205 + first % 50, 80 + second % 130, 40 + third % 55])),
        }
    }

    /// The style of a box by its change, from -1 (gone, blue) over 0 (pale) to 1 (new, red); `is_odd` separates neighbours.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of 255")]
    pub(crate) fn change(self, part: f64, is_odd: bool) -> Style {
        let black = Style::default().fg(self.of([0, 0, 0]));
        let pale = (225.0 * (1.0 - part.abs().min(1.0) * 0.8)) as u8;
        let full = if is_odd { 240 } else { 225 };
        match self {
            Self::None if is_odd => Style::default().add_modifier(Modifier::REVERSED),
            Self::None => Style::default(),
            _ if part > 0.0 => black.bg(self.of([full, pale, pale])),
            _ if part < 0.0 => black.bg(self.of([pale, pale, full])),
            _ => black.bg(self.of([full, full, full])),
        }
    }

    /// The style of a cell by its share of the heaviest, 0 to 255.
    pub(crate) fn heat(self, share: u8) -> Style {
        let cold = 255 - share;
        match self {
            Self::None => Style::default(),
            _ => Style::default().fg(self.of([0, 0, 0])).bg(self.of([255, 80 + cold / 3 * 2, cold])),
        }
    }

    /// A colour, or the nearest one in the palette.
    fn of(self, [red, green, blue]: [u8; 3]) -> Color {
        match self {
            Self::None => Color::Reset,
            Self::True => Color::Rgb(red, green, blue),
            Self::Indexed if red == green && green == blue && (8..=238).contains(&red) => {
                Color::Indexed(232 + (red - 8) / 10)
            }
            Self::Indexed => Color::Indexed(16 + 36 * sixth(red) + 6 * sixth(green) + sixth(blue)),
        }
    }
}

/// The nearest step of the palette's cube, 0 to 5, for a component.
///
/// Source: xterm, `256colres.pl`: steps of 0, 95, 135, 175, 215 and 255.
const fn sixth(component: u8) -> u8 {
    match component {
        0..48 => 0,
        48..115 => 1,
        _ => (component - 35) / 40,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_that_the_terminal_has() {
        assert_eq!(Colours::True.of([1, 2, 3]), Color::Rgb(1, 2, 3));
        assert_eq!(Colours::Indexed.of([255, 0, 95]), Color::Indexed(16 + 36 * 5 + 1));
        assert_eq!(Colours::Indexed.of([8, 8, 8]), Color::Indexed(232));
        assert_eq!(Colours::Indexed.of([238, 238, 238]), Color::Indexed(255));
        let roles = [TextRole::Bar, TextRole::Cursor, TextRole::Found];
        assert!(roles.iter().all(|&role| Colours::None.style(role).fg.is_none_or(|fg| fg == Color::Reset)));
        assert_ne!(Colours::None.style(TextRole::Cursor), Colours::None.style(TextRole::Plain));
        assert_eq!(Colours::True.flame(b"f", true), Colours::True.flame(b"f", false));
    }
}
