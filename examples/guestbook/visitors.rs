//! Who is looking at the guestbook: a context for each browser.
//!
//! A [`Context`] is meant for one request. This guestbook keeps one for as long as a browser
//! comes back, because "read your own writes" has to outlive the redirect that follows a form:
//! the write is in one request, the read of it in the next. Contexts live in this process, so
//! this works for one server; several would have to send a visitor always to the same one.

use std::collections::HashMap;
use std::time::Instant;

use diesel_routed::{Consistency, Context};

use crate::db::Entry;

/// How many browsers are remembered at most.
const REMEMBERED: usize = 1000;

/// What a browser's cookie says: random, so that nobody guesses another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VisitorId(u128);

impl VisitorId {
    fn new() -> Self {
        Self(rand::random())
    }

    pub fn parse(text: &str) -> Option<Self> {
        u128::from_str_radix(text, 16).ok().map(Self)
    }

    pub fn to_text(self) -> String {
        format!("{:032x}", self.0)
    }
}

#[derive(Debug, Clone)]
pub struct Visitor {
    pub id: VisitorId,
    /// The same one in every request of this browser; a clone is no copy.
    pub context: Context,
    /// How this visitor's blocks read.
    pub consistency: Consistency,
    /// The last entry of this visitor.
    pub signed: Option<Entry>,
    came: Instant,
}

#[derive(Default)]
pub struct Visitors(HashMap<VisitorId, Visitor>);

impl Visitors {
    /// The visitor with this cookie; a new one if it is unknown.
    pub fn welcome(&mut self, cookie: Option<VisitorId>) -> Visitor {
        if let Some(known) = cookie.and_then(|id| self.0.get_mut(&id)) {
            known.came = Instant::now();
            return known.clone();
        }
        if self.0.len() >= REMEMBERED {
            let longest_away = self.0.values().min_by_key(|visitor| visitor.came);
            if let Some(id) = longest_away.map(|visitor| visitor.id) {
                self.0.remove(&id);
            }
        }
        let visitor = Visitor {
            id: VisitorId::new(),
            context: Context::new(),
            consistency: Consistency::Session,
            signed: None,
            came: Instant::now(),
        };
        self.0.insert(visitor.id, visitor.clone());
        visitor
    }

    pub fn change(&mut self, id: VisitorId, change: impl FnOnce(&mut Visitor)) {
        if let Some(visitor) = self.0.get_mut(&id) {
            change(visitor);
        }
    }
}
