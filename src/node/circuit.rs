//! Whether a node may be asked; pure, the clock comes from the caller.

use std::time::{Duration, Instant};

/// The circuit of a replica: open for a while after it could not be reached.
///
/// While it is open nobody dials the node; whoever comes first after that tries again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Circuit {
    open_until: Option<Instant>,
}

impl Circuit {
    /// Opens the circuit for `quarantine` and tells whether it was closed before.
    pub(crate) fn open(&mut self, now: Instant, quarantine: Duration) -> Change {
        let change = match self.open_until {
            None => Change::Opened,
            Some(_) => Change::None,
        };
        self.open_until = Some(now + quarantine);
        change
    }

    /// Closes the circuit and tells whether it was open before.
    pub(crate) fn close(&mut self) -> Change {
        match self.open_until.take() {
            Some(_) => Change::Closed,
            None => Change::None,
        }
    }

    /// Tells whether the node may be asked.
    pub(crate) fn admits(&self, now: Instant) -> bool {
        self.open_until.is_none_or(|until| now >= until)
    }

    /// Tells whether the last thing known of the node is a failure.
    pub(crate) fn is_open(&self) -> bool {
        self.open_until.is_some()
    }
}

/// What an observation changed, so that each change is logged once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing.
    None,
    /// The node is down from now on.
    Opened,
    /// The node is up again.
    Closed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circuit_opens_for_the_quarantine_and_closes_on_success() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let quarantine = Duration::from_secs(5);
        let mut circuit = Circuit::default();
        assert!(circuit.admits(start), "a new node is asked");
        assert_eq!(circuit.open(at(0), quarantine), Change::Opened);
        assert!(!circuit.admits(at(4)), "not dialled while open");
        assert!(circuit.admits(at(5)), "tried again after the quarantine");
        assert_eq!(circuit.open(at(5), quarantine), Change::None, "still down");
        assert!(!circuit.admits(at(9)), "the quarantine starts anew");
        assert_eq!(circuit.close(), Change::Closed);
        assert_eq!(circuit.close(), Change::None);
        assert!(circuit.admits(at(0)));
    }
}
