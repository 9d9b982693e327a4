//! The tree of a document, function by function.
//!
//! Source: the Chrome DevTools Protocol, domain HeapProfiler, types `SamplingHeapProfile` and `SamplingHeapProfileNode`; V8,
//! `src/inspector/v8-heap-profiler-agent-impl.cc`.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::NAME;
use crate::v8::frames::CallFrame;
use crate::{Error, Position};

/// A step through the tree.
#[derive(Debug)]
pub(super) enum TreeStep {
    /// A function begins; what follows until its end is about it and those that it called.
    Begin,
    /// The function that began last and has not ended.
    Function(CallFrame),
    /// Its bytes.
    SelfSize(f64),
    End,
}

/// Walks through a document.
pub(super) struct TreeSteps<'a> {
    text: &'a [u8],
    at: usize,
    /// The brackets and braces that are open: whether each one began a function.
    open: Vec<bool>,
    /// Whether the next brace begins a function.
    is_function_next: bool,
}

impl<'a> TreeSteps<'a> {
    pub(super) const fn new(text: &'a [u8]) -> Self {
        Self { text, at: 0, open: Vec::new(), is_function_next: false }
    }

    /// The next step; `None` at the end of the document.
    ///
    /// # Errors
    /// If the text is not such a document, or ends before it does.
    pub(super) fn next(&mut self) -> Result<Option<TreeStep>, Error> {
        loop {
            let Some(&byte) = self.text.get(self.at) else {
                return if self.open.is_empty() { Ok(None) } else { Err(self.truncated()) };
            };
            match byte {
                b'"' => {
                    if let Some(step) = self.member()? {
                        return Ok(Some(step));
                    }
                }
                b'{' | b'[' => {
                    self.at += 1;
                    let begins = byte == b'{' && self.is_function_next;
                    // Each element of a list of functions is one.
                    self.is_function_next &= byte == b'[';
                    self.open.push(begins);
                    if begins {
                        return Ok(Some(TreeStep::Begin));
                    }
                }
                b'}' | b']' => {
                    self.at += 1;
                    let Some(ends) = self.open.pop() else { return Err(self.unexpected(byte)) };
                    // The next one in the list around it.
                    self.is_function_next = ends;
                    if ends {
                        return Ok(Some(TreeStep::End));
                    }
                }
                b',' | b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                _ => return Err(self.unexpected(byte)),
            }
        }
    }

    /// The line of the next byte.
    pub(super) fn line(&self) -> u64 {
        1 + memchr::memchr_iter(b'\n', &self.text[..self.at.min(self.text.len())]).count() as u64
    }

    /// Takes a member; `None` if it is no step.
    fn member(&mut self) -> Result<Option<TreeStep>, Error> {
        let key: String = self.value()?;
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        match self.text.get(self.at) {
            Some(b':') => self.at += 1,
            Some(&byte) => return Err(self.unexpected(byte)),
            None => return Err(self.truncated()),
        }
        Ok(match &*key {
            "head" | "children" => {
                self.is_function_next = true;
                None
            }
            "callFrame" => Some(TreeStep::Function(self.value()?)),
            "selfSize" => Some(TreeStep::SelfSize(self.value()?)),
            _ => {
                self.value::<IgnoredAny>()?;
                None
            }
        })
    }

    /// Takes a value.
    fn value<'de, T: Deserialize<'de>>(&mut self) -> Result<T, Error>
    where
        'a: 'de,
    {
        let mut values = serde_json::Deserializer::from_slice(&self.text[self.at..]).into_iter();
        let value = values.next();
        self.at += values.byte_offset();
        match value {
            Some(Ok(value)) => Ok(value),
            Some(Err(error)) if error.is_eof() => Err(self.truncated()),
            Some(Err(error)) => {
                let message = error.to_string();
                let message = message.split(" at line ").next().unwrap_or_default();
                Err(Error::malformed(NAME, Position::Line(self.line()), message))
            }
            None => Err(self.truncated()),
        }
    }

    #[cold]
    fn truncated(&self) -> Error {
        Error::truncated(NAME, Position::Line(self.line()), "truncated: the document does not end")
    }

    #[cold]
    fn unexpected(&self, byte: u8) -> Error {
        let message = format!("expected a member of a function, found `{}`", byte.escape_ascii());
        Error::malformed(NAME, Position::Line(self.line()), message)
    }
}
