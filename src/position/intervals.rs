//! Sets of transaction numbers, as sorted intervals.

use std::fmt;

/// A set of numbers: intervals in order that neither touch nor overlap.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Intervals(Vec<Interval>);

/// The numbers from `first` to `last`, both included.
///
/// Neither is above `i64::MAX`, so that 1 can be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Interval {
    pub(super) first: u64,
    pub(super) last: u64,
}

impl Intervals {
    /// Makes the set of all numbers of `intervals`, which may come in any order.
    pub(super) fn union(mut intervals: Vec<Interval>) -> Self {
        intervals.sort_unstable();
        let mut joined: Vec<Interval> = Vec::with_capacity(intervals.len());
        for next in intervals {
            match joined.last_mut() {
                Some(previous) if next.first <= previous.last + 1 => {
                    previous.last = previous.last.max(next.last);
                }
                _ => joined.push(next),
            }
        }
        Self(joined)
    }

    pub(super) fn merge(&self, other: &Self) -> Self {
        Self::union([self.0.as_slice(), &other.0].concat())
    }

    pub(super) fn covers(&self, other: &Self) -> bool {
        other.0.iter().all(|wanted| {
            // what does not touch cannot be covered by two
            let place = self.0.partition_point(|own| own.last < wanted.last);
            self.0
                .get(place)
                .is_some_and(|own| own.first <= wanted.first)
        })
    }

    pub(super) fn subtract(&self, other: &Self) -> Self {
        let mut left = Vec::new();
        let mut holes = other.0.iter().peekable();
        for own in &self.0 {
            let mut first = own.first;
            while let Some(hole) = holes.next_if(|hole| hole.last < own.last) {
                if first < hole.first {
                    let last = hole.first - 1;
                    left.push(Interval { first, last });
                }
                first = first.max(hole.last + 1);
            }
            // a hole that reaches beyond this interval may reach into the next one
            let last = match holes.peek() {
                Some(hole) => own.last.min(hole.first - 1),
                None => own.last,
            };
            if first <= last {
                left.push(Interval { first, last });
            }
        }
        Self(left)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Intervals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Interval { first, last } in &self.0 {
            match first == last {
                true => write!(f, ":{first}")?,
                false => write!(f, ":{first}-{last}")?,
            }
        }
        Ok(())
    }
}
