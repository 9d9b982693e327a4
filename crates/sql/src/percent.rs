//! Percent-encoding in addresses.

use std::fmt::Write as _;

/// Decodes percent signs; an invalid one is kept.
pub(crate) fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        // Check for digits, because parsing would accept a sign.
        let digits = behind.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).filter(|_| byte == b'%') {
            Some(meant) => {
                bytes.push(meant);
                rest = &behind[2..];
            }
            None => {
                bytes.push(byte);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Encodes all characters with a meaning in an address.
pub(crate) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            other => {
                let _ = write!(encoded, "%{other:02X}");
            }
        }
    }
    encoded
}

/// Removes the parameters from an address for which `wants` returns `true`; it receives the key and the value.
pub(crate) fn take_parameters(url: &mut String, mut wants: impl FnMut(&str, String) -> bool) {
    let Some((address, parameters)) = url.split_once('?') else { return };
    let is_left = |parameter: &&str| {
        let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        !wants(&decoded(key), decoded(value))
    };
    let left: Vec<_> = parameters.split('&').filter(is_left).collect();
    *url = match left.is_empty() {
        true => address.to_owned(),
        false => format!("{address}?{}", left.join("&")),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percent_sign_without_two_digits_is_itself() {
        assert_eq!(decoded("a%2Fb%2fc"), "a/b/c");
        for plain in ["a%+1b", "%-1", "%", "%1", "100%", "% 1", "%g1"] {
            assert_eq!(decoded(plain), plain);
        }
    }
}
