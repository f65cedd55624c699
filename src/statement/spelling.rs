//! How a name is spelled, whatever the case of its letters. Compares names without a look at each letter.

/// A name to be looked up. It equals a name without quotes if only the case of letters differs.
///
/// Case is one bit of a letter, and is ignored in every byte: between bytes that may stand in a bare name this confuses
/// nothing else. A quoted name holds any byte; if one equals a listed name, a closer look is due.
#[derive(Clone, Copy)]
pub(super) struct Spelling<'a> {
    text: &'a [u8],
    /// Of up to [`Self::WHOLE`] bytes these two and the length are all there is to know.
    head: u64,
    tail: u64,
}

impl<'a> Spelling<'a> {
    const WHOLE: usize = 16;
    const CASE: u64 = u64::from_le_bytes([0x20; 8]);

    #[inline]
    pub(super) const fn of(text: &'a [u8]) -> Self {
        let (head, tail) = ends(text);
        Self {
            text,
            head: head | Self::CASE,
            tail: tail | Self::CASE,
        }
    }

    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.text.len()
    }

    /// Where a table of so many slots has this name, unless others have taken the place.
    #[inline]
    pub(super) const fn slot(&self, slots: usize) -> usize {
        let head = self.head.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let tail = (self.tail ^ self.text.len() as u64).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
        // the upper bits of a product depend on all bits of its factors
        let hash = (head ^ tail) >> 32;
        ((hash * slots as u64) >> 32) as usize
    }
}

impl PartialEq for Spelling<'_> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        (self.text.len(), self.head, self.tail) == (other.text.len(), other.head, other.tail)
            && (self.text.len() <= Self::WHOLE || self.text.eq_ignore_ascii_case(other.text))
    }
}

/// The first bytes and the last ones, which overlap or leave some out between them.
#[inline]
const fn ends(text: &[u8]) -> (u64, u64) {
    if let (Some(head), Some(tail)) = (text.first_chunk(), text.last_chunk()) {
        (u64::from_le_bytes(*head), u64::from_le_bytes(*tail))
    } else if let (Some(head), Some(tail)) = (text.first_chunk(), text.last_chunk()) {
        let [head, tail] = [u32::from_le_bytes(*head), u32::from_le_bytes(*tail)];
        (head as u64, tail as u64)
    } else if let (Some(head), Some(tail)) = (text.first_chunk(), text.last_chunk()) {
        let [head, tail] = [u16::from_le_bytes(*head), u16::from_le_bytes(*tail)];
        (head as u64, tail as u64)
    } else if let [byte] = text {
        (*byte as u64, 0)
    } else {
        (0, 0)
    }
}
