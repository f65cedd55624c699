//! Where in a text a byte stands. Eight bytes are looked at at once: most names and texts in quotes are short, and where
//! a loop over their bytes ends is hard to foresee.

const EACH: u64 = u64::from_le_bytes([1; 8]);
const UPPER_BITS: u64 = EACH << 7;

/// The first place of any of these bytes, not before `at`.
#[inline]
pub(super) fn seek<const N: usize>(wanted: [u8; N], text: &[u8], mut at: usize) -> Option<usize> {
    while let Some(eight) = text.get(at..)?.first_chunk() {
        let eight = u64::from_le_bytes(*eight);
        let found = wanted
            .iter()
            .fold(0, |found, &byte| found | places(byte, eight));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    let in_rest = text[at..].iter().position(|byte| wanted.contains(byte))?;
    Some(at + in_rest)
}

/// The upper bit of each byte that is the one wanted. Only the lowest bit set is sure: it may carry into those above.
#[inline]
fn places(byte: u8, eight: u64) -> u64 {
    let zero_where_found = eight ^ (EACH * u64::from(byte));
    zero_where_found.wrapping_sub(EACH) & !zero_where_found & UPPER_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_found_at_every_place_as_by_a_look_at_each() {
        for byte in 0..=u8::MAX {
            for place in 0..20 {
                for around in [b'a', 0, 0x7f, 0xff, byte ^ 1, byte ^ 0x80] {
                    let mut text = [around; 20];
                    text[place] = byte;
                    let position = |of: &dyn Fn(u8) -> bool| text.iter().position(|&b| of(b));
                    assert_eq!(seek([byte], &text, 0), position(&|b| b == byte));
                    let either = position(&|b| b == byte || b == b'*');
                    assert_eq!(seek([b'*', byte], &text, 0), either);
                }
            }
        }
    }
}
