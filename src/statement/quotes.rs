//! Quoted text: literals, identifiers, dollar quotes.
use super::class::{CLASSES, Class, in_word};
use super::lexer::{Lexer, Token};
use super::seek::seek;

/// Whether a backslash hides the quote behind it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Escapes {
    None,
    Backslash,
}

impl<'a> Lexer<'a> {
    /// Skips to behind the closing quote and tells what it closes; a doubled quote is a part of that. `None`: it is never
    /// closed.
    #[inline]
    fn skip_quoted(&mut self, quote: u8, escapes: Escapes) -> Option<&'a [u8]> {
        let sql = self.sql;
        let start = self.at + 1;
        let mut at = start;
        loop {
            at = match escapes {
                Escapes::None => seek([quote], sql, at)?,
                Escapes::Backslash => seek([quote, b'\\'], sql, at)?,
            };
            let escaped = sql[at] != quote;
            if !escaped && sql.get(at + 1) != Some(&quote) {
                self.at = at + 1;
                return Some(&sql[start..at]);
            }
            at += 2;
        }
    }

    pub(super) fn literal(&mut self, escapes: Escapes) -> Token {
        match self.skip_quoted(b'\'', escapes) {
            Some(_) => Token::Text,
            None => self.broken(),
        }
    }

    pub(super) fn quoted(&mut self, quote: u8, escapes: Escapes) -> Token {
        match self.skip_quoted(quote, escapes) {
            Some(inside) => {
                self.text = inside;
                Token::Quoted
            }
            None => self.broken(),
        }
    }

    /// PostgreSQL `E'..'`: a literal that goes on after a line break keeps its backslash rule.
    pub(super) fn escape_text(&mut self) -> Token {
        loop {
            if self.skip_quoted(b'\'', Escapes::Backslash).is_none() {
                return self.broken();
            }
            let end = self.at;
            if !self.skip_to_continuation() {
                self.at = end;
                return Token::Text;
            }
        }
    }

    fn skip_to_continuation(&mut self) -> bool {
        let mut line_break = false;
        loop {
            match self.peek(0) {
                Some(b'\n' | b'\r') => line_break = true,
                Some(byte) if CLASSES[byte as usize] == Class::Space => {}
                Some(b'-') if self.starts_dash_comment() => {
                    self.line_comment();
                    continue;
                }
                byte => return line_break && byte == Some(b'\''),
            }
            self.at += 1;
        }
    }

    /// PostgreSQL `$1`, `$$..$$` and `$tag$..$tag$`.
    pub(super) fn dollar(&mut self) -> Token {
        if self.peek(1).is_some_and(|byte| byte.is_ascii_digit()) {
            return self.parameter_number();
        }
        let bytes = self.rest();
        let Some(tag) = dollar_tag(bytes) else {
            return self.parameter_number();
        };
        let mut from = tag.len();
        while let Some(next) = seek([b'$'], bytes, from) {
            from = next;
            if bytes[from..].starts_with(tag) {
                self.at += from + tag.len();
                return Token::Text;
            }
            from += 1;
        }
        self.broken()
    }

    fn parameter_number(&mut self) -> Token {
        self.at += 1;
        self.skip_while(|byte| byte.is_ascii_digit());
        Token::Parameter
    }
}

/// The opening `$tag$`, if there is one. A tag is an identifier without `$`, or nothing.
fn dollar_tag(bytes: &[u8]) -> Option<&[u8]> {
    let length = 1 + bytes[1..]
        .iter()
        .position(|&byte| !in_word(byte) || byte == b'$')?;
    (bytes[length] == b'$').then(|| &bytes[..=length])
}
