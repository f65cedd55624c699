//! What happens to the servers while the clients go on.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rand::Rng;
use rand::rngs::StdRng;

use super::plan::dice;
use crate::support::Cluster;

pub const REPLICAS: usize = 2;

/// After the switch-over it takes so long until no connection to the old primary is left.
const GRACE: Duration = Duration::from_secs(3);

/// How often each thing happened to a replica.
#[derive(Debug, Default)]
#[allow(dead_code)] // read by whoever reads the message
pub struct Times {
    pauses: u32,
    delays: u32,
    kills: u32,
}

/// The servers, and who does something to them at present.
pub struct Servers<'a> {
    cluster: &'a Cluster,
    /// The nodes that are replicas; locked while something happens to one.
    replicas: [Mutex<usize>; REPLICAS],
    /// When one of them took over from the primary.
    takeover: Mutex<Option<(Instant, Option<Instant>)>>,
}

impl<'a> Servers<'a> {
    pub fn new(cluster: &'a Cluster) -> Self {
        Self {
            cluster,
            replicas: [Mutex::new(1), Mutex::new(2)],
            takeover: Mutex::default(),
        }
    }

    /// Pauses, slows, kills and restarts a replica at random until `end` is dropped; leaves it well.
    pub fn trouble(&self, replica: usize, seed: u64, end: &Receiver<()>) -> Times {
        let mut dice = dice(seed ^ (replica as u64 + 1));
        let mut times = Times::default();
        while !ends_within(end, dice.random_range(5..150)) {
            let node = self.replicas[replica].lock().expect("the cluster obeys");
            self.trouble_once(*node, &mut dice, &mut times, end);
        }
        times
    }

    fn trouble_once(&self, node: usize, dice: &mut StdRng, times: &mut Times, end: &Receiver<()>) {
        let cluster = self.cluster;
        let round = times.pauses + times.delays;
        // each soon for the first time, so that a short run has them all
        let delay = (round % 3 == 1).then(|| Duration::from_millis(dice.random_range(50..400)));
        match delay {
            Some(delay) => cluster.delay_replication(node, delay),
            None => cluster.pause_replication(node),
        }
        times.delays += u32::from(delay.is_some());
        times.pauses += u32::from(delay.is_none());
        let ended = ends_within(end, dice.random_range(5..400));
        let kill = !ended && round % 7 == 3;
        if kill {
            // one that is slowed comes back as it was before
            cluster.kill(node);
            times.kills += 1;
            ends_within(end, dice.random_range(0..300));
            cluster.restart(node);
            ends_within(end, dice.random_range(0..300));
        }
        match delay {
            Some(_) => cluster.delay_replication(node, Duration::ZERO),
            None if kill => {}
            None => cluster.resume_replication(node),
        }
    }

    /// Lets one replica take over, while the other is behind; nothing that is committed is lost.
    pub fn take_over(&self) {
        let cluster = self.cluster;
        let [first, second] = &self.replicas;
        let mut first = first.lock().expect("the cluster obeys");
        let second = second.lock().expect("the cluster obeys");
        cluster.pause_replication(*second);
        cluster.wait_replicated();
        let begin = Instant::now();
        *self.takeover.lock().expect("no panic here") = Some((begin, None));
        cluster.switch_over(0, *first);
        cluster.resume_replication(*second);
        cluster.follow(*second, *first);
        *self.takeover.lock().expect("no panic here") = Some((begin, Some(Instant::now())));
        *first = 0;
    }

    /// Whether what ran from `begin` to now may have failed because the primary was about to change.
    pub fn may_fail(&self, begin: Instant) -> bool {
        let takeover = *self.takeover.lock().expect("no panic here");
        takeover.is_some_and(|(_, end)| end.is_none_or(|end| begin <= end + GRACE))
    }

    /// How long the switch-over took.
    pub fn took(&self) -> Option<Duration> {
        let (begin, end) = (*self.takeover.lock().expect("no panic here"))?;
        Some(end? - begin)
    }
}

fn ends_within(end: &Receiver<()>, millis: u64) -> bool {
    let waited = end.recv_timeout(Duration::from_millis(millis));
    waited != Err(RecvTimeoutError::Timeout)
}
