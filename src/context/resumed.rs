//! What earlier requests have written, as their tokens say, until it is known which cluster each
//! of it belongs to.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::seen::Seen;
use super::stickiness::Stickiness;
use super::token::{self, ClusterTag, Read, UnixMillis, Written, left_of};

/// What tokens said that no cluster has asked for yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Resumed {
    written: Vec<Written>,
    /// When a token was read that says no more than that something was written.
    just_wrote: Option<Instant>,
}

impl Resumed {
    pub(super) fn of(read: Read, now: Instant) -> Self {
        match read {
            Read::Nothing => Self::default(),
            Read::JustWrote => Self {
                written: vec![],
                just_wrote: Some(now),
            },
            Read::Written(written) => Self {
                written,
                just_wrote: None,
            },
        }
    }

    /// Takes in another token of the same client.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            written: token::merge(self.written, other.written),
            just_wrote: self.just_wrote.max(other.just_wrote),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.written.is_empty() && self.just_wrote.is_none()
    }

    /// The marks of the cluster of this name, which has not asked before.
    pub(super) fn marks_of(
        &mut self,
        cluster: ClusterTag,
        sticky_for: Duration,
        wall: UnixMillis,
        now: Instant,
    ) -> (Stickiness, Option<Seen>) {
        let (mut marks, mut seen) = (Stickiness::default(), None);
        if let Some(at) = self.just_wrote {
            marks.mark_elsewhere(at, sticky_for);
        }
        if let Some(at) = self
            .written
            .iter()
            .position(|written| written.cluster == cluster)
        {
            let written = self.written.swap_remove(at);
            let left = written.left(wall, sticky_for);
            match written.position {
                // a position lives until it is reached
                Some(position) => marks.resume(position, now + left),
                None if written.is_read() => {}
                None => marks.mark_elsewhere(now, left),
            }
            seen = written.viewed.map(|viewed| Seen {
                node: None,
                by: None,
                until: now + left_of(viewed.until, wall, sticky_for),
                floor: Some(Arc::new(viewed.floor)),
            });
        }
        (marks, seen)
    }

    /// Tells whether something is left that time has not ended.
    pub(super) fn is_sticky(&self, wall: UnixMillis) -> bool {
        let open = |written: &Written| {
            written.position.is_some() || !written.left(wall, Duration::MAX).is_zero()
        };
        self.just_wrote.is_some() || self.written.iter().any(open)
    }

    /// What no cluster of this process has asked for, to be handed on.
    pub(super) fn written(&self) -> &[Written] {
        &self.written
    }
}
