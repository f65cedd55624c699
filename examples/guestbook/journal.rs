//! What was asked of the database lately, for the page.

use std::collections::VecDeque;
use std::time::Instant;

use crate::db::Step;
use crate::visitors::VisitorId;

const KEPT: usize = 10;

/// Who sent a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    Visitor(VisitorId),
    /// The other visitor that this one plays.
    Other(VisitorId),
}

#[derive(Debug, Clone)]
pub struct Request {
    pub at: Instant,
    pub who: Who,
    pub did: &'static str,
    /// The statements, or what went wrong.
    pub steps: Result<Vec<Step>, String>,
}

/// The latest requests, newest first.
#[derive(Debug, Clone, Default)]
pub struct Journal(VecDeque<Request>);

impl Journal {
    pub fn add(&mut self, request: Request) {
        self.0.truncate(KEPT - 1);
        self.0.push_front(request);
    }

    pub fn requests(&self) -> impl Iterator<Item = &Request> {
        self.0.iter()
    }

    /// The name of the node that answered last.
    pub fn latest_node(&self) -> Option<&str> {
        let steps = self.0.front()?.steps.as_ref().ok()?;
        Some(&*steps.last()?.route.node)
    }
}
