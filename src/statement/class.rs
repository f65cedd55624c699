//! What a byte can begin.

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Space,
    Word,
    Digit,
    Dollar,
    Apostrophe,
    QuotationMark,
    Backtick,
    Bracket,
    At,
    Colon,
    Question,
    Dash,
    Hash,
    Slash,
    Star,
    Open,
    Close,
    Semicolon,
    Comma,
    Dot,
    Equals,
    Nul,
    Other,
}

pub(super) const CLASSES: [Class; 256] = classes();

const fn classes() -> [Class; 256] {
    let mut table = [Class::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b' ' | b'\t'..=b'\r' => Class::Space,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80..=0xff => Class::Word,
            b'0'..=b'9' => Class::Digit,
            b'\'' => Class::Apostrophe,
            b'"' => Class::QuotationMark,
            b'`' => Class::Backtick,
            b'[' => Class::Bracket,
            b'$' => Class::Dollar,
            b'@' => Class::At,
            b':' => Class::Colon,
            b'?' => Class::Question,
            b'-' => Class::Dash,
            b'#' => Class::Hash,
            b'/' => Class::Slash,
            b'*' => Class::Star,
            b'(' => Class::Open,
            b')' => Class::Close,
            b';' => Class::Semicolon,
            b',' => Class::Comma,
            b'.' => Class::Dot,
            b'=' => Class::Equals,
            0 => Class::Nul,
            _ => Class::Other,
        };
        byte += 1;
    }
    table
}

/// What may stand inside an identifier: all servers allow `$` there, though not all at its start.
static IN_WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = matches!(CLASSES[byte], Class::Word | Class::Digit | Class::Dollar);
        byte += 1;
    }
    table
};

pub(super) fn in_word(byte: u8) -> bool {
    IN_WORD[byte as usize]
}
