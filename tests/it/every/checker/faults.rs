//! What happens to a replica while the clients go on.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use rand::Rng;

use super::plan::dice;
use crate::support::Cluster;

/// Pauses and resumes the replication of a replica at random, and kills and restarts it now and
/// then, until `end` is dropped; leaves it running. Returns how often each happened.
pub fn trouble(cluster: &Cluster, replica: usize, seed: u64, end: &Receiver<()>) -> [u32; 2] {
    let mut dice = dice(seed ^ replica as u64);
    let ends_within = |millis| {
        let waited = end.recv_timeout(Duration::from_millis(millis));
        waited != Err(RecvTimeoutError::Timeout)
    };
    let (mut pauses, mut kills) = (0, 0);
    loop {
        if ends_within(dice.random_range(5..150)) {
            return [pauses, kills];
        }
        cluster.pause_replication(replica);
        pauses += 1;
        // the first time soon, so that a short run has one, too
        let ended = ends_within(dice.random_range(5..400));
        if !ended && pauses % 8 == 3 {
            cluster.kill(replica);
            kills += 1;
            ends_within(dice.random_range(0..300));
            cluster.restart(replica);
        } else {
            cluster.resume_replication(replica);
        }
    }
}
