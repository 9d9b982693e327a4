//! A JSON tokenizer for slices of any nesting depth.

use borehole_text::{Error, Position};

use super::FORMAT;

/// A token. Strings are decoded, numbers are kept as text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Open,
    Close,
    OpenList,
    CloseList,
    String(Vec<u8>),
    Number(&'a [u8]),
    Bool(bool),
    Null,
}

/// Reads tokens; checks commas and colons.
pub(super) struct Tokens<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) const fn offset(&self) -> usize {
        self.at
    }

    /// The input from `start` to the current position.
    pub(super) fn since(&self, start: usize) -> &'a [u8] {
        self.bytes.get(start..self.at).unwrap_or_default()
    }

    fn position(&self) -> Position {
        Position::Byte(self.at as u64)
    }

    pub(super) fn wrong(&self, message: impl Into<String>) -> Error {
        Error::malformed(FORMAT, self.position(), message)
    }

    /// The next byte that is not white space, without consuming it.
    pub(super) fn peek(&mut self) -> Result<u8, Error> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
        self.at += blanks;
        self.bytes.get(self.at).copied().ok_or_else(|| self.ends())
    }

    fn ends(&self) -> Error {
        Error::truncated(FORMAT, self.position(), "truncated: expected more input")
    }

    /// Consumes the next byte if it is `byte`, and returns whether it was.
    pub(super) fn take(&mut self, byte: u8) -> Result<bool, Error> {
        let is_next = self.peek()? == byte;
        self.at += usize::from(is_next);
        Ok(is_next)
    }

    pub(super) fn expect(&mut self, byte: u8) -> Result<(), Error> {
        if self.take(byte)? {
            return Ok(());
        }
        let found = self.bytes.get(self.at).copied().unwrap_or_default();
        Err(self.wrong(format!("expected {:?}, found {:?}", char::from(byte), char::from(found))))
    }

    /// Reads the next key of an object; `None` at its end. `is_first` states whether no entry has been read.
    pub(super) fn key(&mut self, is_first: &mut bool) -> Result<Option<Vec<u8>>, Error> {
        if self.take(b'}')? {
            return Ok(None);
        }
        if !std::mem::replace(is_first, false) {
            self.expect(b',')?;
            self.peek()?;
        }
        self.expect(b'"')?;
        let key = self.string()?;
        self.expect(b':')?;
        Ok(Some(key))
    }

    /// Whether a list has another entry.
    pub(super) fn entry(&mut self, is_first: &mut bool) -> Result<bool, Error> {
        if self.take(b']')? {
            return Ok(false);
        }
        if !std::mem::replace(is_first, false) {
            self.expect(b',')?;
        }
        Ok(true)
    }

    pub(super) fn next(&mut self) -> Result<Token<'a>, Error> {
        let byte = self.peek()?;
        let start = self.at;
        self.at += 1;
        match byte {
            b'{' => Ok(Token::Open),
            b'}' => Ok(Token::Close),
            b'[' => Ok(Token::OpenList),
            b']' => Ok(Token::CloseList),
            b'"' => self.string().map(Token::String),
            b'-' | b'0'..=b'9' => self.number(start),
            b't' => self.word(start, b"true", Token::Bool(true)),
            b'f' => self.word(start, b"false", Token::Bool(false)),
            b'n' => self.word(start, b"null", Token::Null),
            _ => {
                self.at = start;
                Err(self.wrong(format!("expected a value, found {:?}", char::from(byte))))
            }
        }
    }

    fn word(&mut self, start: usize, word: &[u8], token: Token<'a>) -> Result<Token<'a>, Error> {
        self.at = start;
        if !self.bytes.get(start..).is_some_and(|rest| rest.starts_with(word)) {
            return Err(self.wrong("expected a value"));
        }
        self.at = start + word.len();
        Ok(token)
    }

    fn number(&mut self, start: usize) -> Result<Token<'a>, Error> {
        let rest = self.bytes.get(start..).unwrap_or_default();
        let is_part = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
        let number = &rest[..rest.iter().take_while(is_part).count()];
        if !super::text::is_number(number) {
            self.at = start;
            return Err(self.wrong("invalid number"));
        }
        self.at = start + number.len();
        Ok(Token::Number(number))
    }

    /// Reads the rest of a string after its opening quote.
    fn string(&mut self) -> Result<Vec<u8>, Error> {
        let mut text = Vec::new();
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let plain = rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\\')).count();
            text.extend_from_slice(&rest[..plain]);
            self.at += plain;
            let ends = self.bytes.get(self.at) == Some(&b'"');
            if ends {
                self.at += 1;
                return Ok(text);
            }
            self.escape(&mut text)?;
        }
    }

    fn escape(&mut self, text: &mut Vec<u8>) -> Result<(), Error> {
        let escaped = self.bytes.get(self.at + 1).copied().ok_or_else(|| self.ends())?;
        let byte = match escaped {
            b'"' | b'\\' | b'/' => escaped,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return self.unicode(text),
            _ => return Err(self.wrong(format!("invalid escape \\{}", char::from(escaped)))),
        };
        self.at += 2;
        text.push(byte);
        Ok(())
    }

    fn unicode(&mut self, text: &mut Vec<u8>) -> Result<(), Error> {
        let first = self.unit().ok_or_else(|| self.wrong("invalid escape \\u"))?;
        let mut units = vec![first];
        if (0xd800..0xdc00).contains(&first) {
            let before = self.at;
            match self.unit() {
                Some(second) if (0xdc00..0xe000).contains(&second) => units.push(second),
                _ => self.at = before,
            }
        }
        let decoded =
            char::decode_utf16(units).map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER));
        text.extend_from_slice(decoded.collect::<String>().as_bytes());
        Ok(())
    }

    /// Reads the code unit of an escape `\u1234` at the current position.
    fn unit(&mut self) -> Option<u16> {
        let digits = self.bytes.get(self.at..self.at + 6)?.strip_prefix(b"\\u")?;
        let text = std::str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'))?;
        let unit = u16::from_str_radix(text, 16).ok()?;
        self.at += 6;
        Some(unit)
    }

    /// Skips a value of any nesting depth.
    pub(super) fn skip(&mut self) -> Result<(), Error> {
        let mut depth = 0_usize;
        loop {
            match self.next()? {
                Token::Open | Token::OpenList => depth += 1,
                Token::Close | Token::CloseList => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return Ok(());
            }
            while matches!(self.peek()?, b',' | b':') {
                self.at += 1;
            }
        }
    }
}
