//! How deep in parentheses something stands.

/// A set of depths. It is empty in most statements, and then asked and cleared at no cost.
#[derive(Clone, Copy, Default)]
pub(super) struct Depths(u128);

impl Depths {
    /// Deeper text is not understood.
    pub(super) const LIMIT: u32 = u128::BITS;

    pub(super) fn has(self, depth: u32) -> bool {
        self.0 != 0 && self.0 & Self::bit(depth) != 0
    }

    pub(super) fn set(&mut self, depth: u32) {
        self.0 |= Self::bit(depth);
    }

    pub(super) fn clear(&mut self, depth: u32) {
        if self.0 != 0 {
            self.0 &= !Self::bit(depth);
        }
    }

    fn bit(depth: u32) -> u128 {
        1_u128.checked_shl(depth).unwrap_or(0)
    }
}
