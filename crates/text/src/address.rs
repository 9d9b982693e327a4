//! Addresses without the passwords in them.

use std::borrow::Cow;

/// Leaves out the passwords of all addresses in a text: `scheme://user:password@host` becomes `scheme://user@host`. An address
/// ends at white space or a quote. A password that should encode `/` or `?` and does not is recognised where what stands before
/// is no host with a port.
///
/// # Examples
///
/// ```
/// use borehole_text::without_passwords;
///
/// assert_eq!(without_passwords("error: s3://me:secret@bucket/lake: refused"), "error: s3://me@bucket/lake: refused");
/// assert_eq!(without_passwords("http://[::1]:80/a:b@c"), "http://[::1]:80/a:b@c");
/// ```
#[must_use]
pub fn without_passwords(text: &str) -> Cow<'_, str> {
    const SCHEME: &str = "://";
    if !text.contains(SCHEME) {
        return text.into();
    }
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(SCHEME) {
        let (scheme, behind) = rest.split_at(at + SCHEME.len());
        let end =
            behind.find(|sign: char| sign.is_whitespace() || "'\"<>`".contains(sign)).unwrap_or(behind.len());
        let (address, behind) = behind.split_at(end);
        shown += scheme;
        shown += &match credentials(address) {
            Some((user, host)) => Cow::Owned(format!("{user}@{host}")),
            None => Cow::Borrowed(address),
        };
        rest = behind;
    }
    shown += rest;
    shown.into()
}

/// The user, and what follows the password, of an address without its scheme; `None` if there is no password.
fn credentials(address: &str) -> Option<(&str, &str)> {
    let authority = &address[..address.find(['/', '?', '#']).unwrap_or(address.len())];
    let is_host = |text: &str| {
        text.ends_with(']')
            || text.rsplit_once(':').is_none_or(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let at = authority.rfind('@').or_else(|| if is_host(authority) { None } else { address.rfind('@') })?;
    let (user, _) = address[..at].split_once(':')?;
    Some((user, &address[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_left_out_and_nothing_else() {
        for (address, shown) in [
            ("s3://user:hunter2@127.0.0.1:1/x", "s3://user@127.0.0.1:1/x"),
            ("s3://user:hun/ter2@h/x", "s3://user@h/x"),
            ("s3://user:hun@ter2@h/x", "s3://user@h/x"),
            ("s3://:hunter2@h/x", "s3://@h/x"),
            ("a s3://u:p@h, 'gs://u:p@h' b", "a s3://u@h, 'gs://u@h' b"),
            ("s3://user@h/x", "s3://user@h/x"),
            ("s3://bucket/a:b@c", "s3://bucket/a:b@c"),
            ("s3://h:80/a:b@c: no", "s3://h:80/a:b@c: no"),
            ("s3://h: a:b@c", "s3://h: a:b@c"),
            ("u:p@h", "u:p@h"),
        ] {
            assert_eq!(without_passwords(address), shown);
        }
    }
}
