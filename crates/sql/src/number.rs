//! Parses decimal numbers from servers.

use crate::backend::ResultField;

/// Parses a decimal number: an integer if it has no fraction and fits in 64 bits.
pub(crate) fn decimal(text: &str) -> ResultField<'static> {
    if let Ok(number) = text.parse() {
        return ResultField::Integer(number);
    }
    text.parse().map_or(ResultField::Null, ResultField::Real)
}

/// Decodes a `numeric` of PostgreSQL, with four decimal digits per group, as text. `None` if `raw` is invalid.
///
/// Source: PostgreSQL's `numeric_send`, in `src/backend/utils/adt/numeric.c`.
#[cfg(feature = "postgresql")]
pub(crate) fn numeric(raw: &[u8]) -> Option<String> {
    use std::fmt::Write as _;

    let mut words = raw.chunks_exact(2).map(|word| u16::from_be_bytes([word[0], word[1]]));
    let (count, weight, sign, scale) = (words.next()?, words.next()?, words.next()?, words.next()?);
    match sign {
        0xc000 => return Some("NaN".to_owned()),
        0xd000 => return Some("inf".to_owned()),
        0xf000 => return Some("-inf".to_owned()),
        _ => {}
    }
    let weight = i32::from(weight.cast_signed());
    let groups: Vec<u16> = words.take(count.into()).collect();
    let group = |at: i32| usize::try_from(at).ok().and_then(|at| groups.get(at)).copied().unwrap_or(0);
    let mut text = if sign == 0x4000 { "-".to_owned() } else { String::new() };
    text.push('0');
    for at in 0..=weight {
        let _ = write!(text, "{:04}", group(at));
    }
    if scale > 0 {
        text.push('.');
        let begin = text.len();
        let mut at = weight + 1;
        while text.len() - begin < scale.into() {
            let _ = write!(text, "{:04}", group(at));
            at += 1;
        }
        text.truncate(begin + usize::from(scale));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_stay_whole() {
        assert_eq!(decimal("12"), ResultField::Integer(12));
        assert_eq!(decimal("-12.5"), ResultField::Real(-12.5));
        assert_eq!(decimal("50.0"), ResultField::Real(50.0));
        assert_eq!(decimal("18446744073709551616"), ResultField::Real(18_446_744_073_709_551_616.0));
    }

    #[cfg(feature = "postgresql")]
    #[test]
    fn groups_are_read() {
        let raw = |words: &[u16]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>();
        let number = |words: &[u16]| decimal(&numeric(&raw(words)).unwrap());
        assert_eq!(number(&[2, 1, 0, 0, 1, 2345]), ResultField::Integer(12_345));
        assert_eq!(number(&[2, 0, 0x4000, 1, 12, 5000]), ResultField::Real(-12.5));
        assert_eq!(number(&[1, 0xffff, 0, 2, 500]), ResultField::Real(0.05));
        assert_eq!(number(&[1, 1, 0, 0, 7]), ResultField::Integer(70_000));
        assert_eq!(number(&[0, 0, 0, 0]), ResultField::Integer(0));
        assert_eq!(numeric(&[0, 1]), None);
    }
}
