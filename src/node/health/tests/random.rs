//! Random lives of a node, against what must hold in any of them.

use proptest::collection::vec;
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;
use crate::node::history::{Freshness, Standing};

/// What happens next; times in milliseconds before the present of the step.
#[derive(Debug, Clone)]
enum Step {
    Dial(Failure, u64),
    Lost(u64),
    Dialled,
    Pass(u8, Access),
    Fail(Failure),
    Silence,
    /// The lag, and the silence of the primary.
    Measure(u64, u64),
    Drain,
    Resume,
}

fn failure() -> impl Strategy<Value = Failure> {
    prop_oneof![
        3 => Just(Failure::Death),
        1 => Just(Failure::Load),
        1 => Just(Failure::Authentication),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let access = prop_oneof![Just(Access::ReadWrite), Just(Access::ReadOnly)];
    prop_oneof![
        2 => (failure(), 0u64..5_000).prop_map(|(failure, ago)| Step::Dial(failure, ago)),
        2 => (0u64..20_000).prop_map(Step::Lost),
        1 => Just(Step::Dialled),
        8 => (prop_oneof![9 => Just(0u8), 1 => Just(1u8)], access)
            .prop_map(|(life, access)| Step::Pass(life, access)),
        2 => failure().prop_map(Step::Fail),
        1 => Just(Step::Silence),
        8 => (0u64..15_000, 0u64..4_000).prop_map(|(lag, silence)| Step::Measure(lag, silence)),
        1 => Just(Step::Drain),
        2 => Just(Step::Resume),
    ]
}

/// What has been seen so far, by simpler means than those under test.
struct Witness {
    role: Role,
    watch: Watch,
    start: Instant,
    now: Instant,
    drained: bool,
    heard: Option<Instant>,
    /// It was told to be down until then, at least, and has not answered since.
    down: Option<Instant>,
    /// No attempt before this, after a refused password.
    refused: Option<Instant>,
    measured: Option<Standing>,
    state: NodeState,
    since: Instant,
}

impl Witness {
    fn new(role: Role, watch: Watch, start: Instant) -> Self {
        Self {
            role,
            watch,
            start,
            now: start,
            drained: false,
            heard: None,
            down: None,
            refused: None,
            measured: None,
            state: NodeState::Unknown,
            since: start,
        }
    }

    fn event(&self, step: &Step) -> Event {
        let ago = |millis| {
            let past = self.now.checked_sub(Duration::from_millis(millis));
            past.map_or(self.start, |past| past.max(self.start))
        };
        match *step {
            Step::Dial(failure, millis) => {
                let began = ago(millis);
                Event::DialFailed { began, failure }
            }
            Step::Lost(millis) => {
                let opened = ago(millis);
                Event::ConnectionLost { opened }
            }
            Step::Dialled => Event::Dialled,
            Step::Pass(life, access) => {
                let life = Life::new(life.to_string());
                Event::ProbePassed { life, access }
            }
            Step::Fail(failure) => Event::ProbeFailed(failure),
            Step::Silence => Event::Silence,
            Step::Measure(lag, silence) => Event::Measured(Evidence::Standing(Standing {
                fresh_as_of: Freshness::Known(ago(lag + silence)),
                newest: Some(ago(silence)),
            })),
            Step::Drain => Event::Drained,
            Step::Resume => Event::Resumed,
        }
    }

    fn see(&mut self, event: &Event, change: Option<Change>) -> Result<(), TestCaseError> {
        let now = self.now;
        match event {
            Event::ProbePassed { .. } => {
                (self.heard, self.down, self.refused) = (Some(now), None, None);
            }
            Event::Dialled => {
                self.refused = None;
                if self.watch == Watch::OnDemand {
                    self.down = None;
                }
            }
            Event::Drained => self.drained = true,
            Event::Resumed => self.drained = false,
            Event::Measured(Evidence::Standing(standing)) => self.measured = Some(*standing),
            Event::ProbeFailed(Failure::Authentication) => {
                self.refused = Some(now + Duration::from_secs(30));
            }
            _ => {}
        }
        if let Some(Change {
            old, new, lasted, ..
        }) = change
        {
            prop_assert!(
                old.is_same_kind(self.state),
                "told {old} after {}",
                self.state
            );
            prop_assert_eq!(lasted, now - self.since, "told how long");
            if !old.is_same_kind(new) {
                (self.state, self.since) = (new, now);
            }
            if let NodeState::Down { until } = new {
                self.down = Some(until);
            }
        }
        Ok(())
    }

    /// What must hold whenever somebody looks.
    fn check(&self, health: &Health, at: Instant) -> Result<(), TestCaseError> {
        let (state, eligible) = (health.state(at), health.is_eligible(at));
        let caller = health.may_dial(Dialler::Caller, at);
        prop_assert_eq!(state == NodeState::Drained, self.drained, "drained wins");
        prop_assert!(!self.drained || !(eligible || caller), "and is left alone");
        let factor = health.weight_factor(at);
        prop_assert!(factor > 0.0 && factor <= 1.0, "{factor}");
        if let Some(until) = self.refused {
            prop_assert!(
                at >= until || !caller,
                "a password is not tried again so soon"
            );
        }
        if self.role == Role::Primary {
            prop_assert_eq!(eligible, !self.drained, "the primary's circuit never opens");
            return Ok(());
        }
        if let Some(until) = self.down {
            let may = self.watch == Watch::OnDemand && at >= until;
            prop_assert!(may || !eligible, "down is down");
        }
        if let (true, Watch::Monitored { patience }) = (eligible, self.watch) {
            prop_assert!(state == NodeState::Up, "only what is up is asked");
            prop_assert!(
                self.heard.is_some_and(|heard| at - heard <= patience),
                "heard of"
            );
            let lag = self.measured.map(|standing| standing.lag(at, patience));
            prop_assert!(
                lag.is_some_and(|lag| lag.is_within(Duration::from_secs(10))),
                "fresh"
            );
        }
        Ok(())
    }
}

fn live(role: Role, watch: Watch, steps: &[(u64, Step, u64)]) -> Result<(), TestCaseError> {
    let start = Instant::now();
    let settings = HealthSettings {
        watch,
        ..super::tests::settings()
    };
    let mut health = Health::new(role, settings, start);
    let mut witness = Witness::new(role, watch, start);
    let mut rng = StdRng::seed_from_u64(steps.len() as u64);
    for (wait, step, look) in steps {
        witness.now += Duration::from_millis(*wait);
        let event = witness.event(step);
        let change = health.on(event.clone(), witness.now, Jitter::draw(&mut rng));
        witness.see(&event, change)?;
        prop_assert!(
            health.visible().is_same_kind(witness.state),
            "every change is told"
        );
        for later in [0, *look] {
            let at = witness.now + Duration::from_millis(later);
            witness.check(&health, at)?;
        }
    }
    Ok(())
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step, u64)>> {
    let wait = prop_oneof![4 => 0u64..300, 1 => 0u64..4_000];
    vec((wait, step(), 0u64..4_000), 0..50)
}

const MONITORED: Watch = Watch::Monitored {
    patience: Duration::from_millis(2_100),
};

proptest! {
    #[test]
    fn any_life_of_a_monitored_replica(steps in steps()) {
        live(Role::Replica, MONITORED, &steps)?;
    }

    #[test]
    fn any_life_of_a_replica_without_a_monitor(steps in steps()) {
        live(Role::Replica, Watch::OnDemand, &steps)?;
    }

    #[test]
    fn any_life_of_a_primary(steps in steps()) {
        live(Role::Primary, MONITORED, &steps)?;
    }

    #[test]
    fn a_replica_is_up_only_with_what_was_committed_before_its_last_return(steps in steps()) {
        let start = Instant::now();
        let mut health = Health::new(Role::Replica, super::tests::settings(), start);
        let mut witness = Witness::new(Role::Replica, MONITORED, start);
        let (mut returned, mut back) = (start, false);
        for (wait, step, _) in steps {
            witness.now += Duration::from_millis(wait);
            let (event, was_down) = (witness.event(&step), health.is_down());
            let known = health.life.clone();
            health.on(event.clone(), witness.now, Jitter::NONE);
            match event {
                Event::ProbePassed { life, .. }
                    if was_down || known.is_some_and(|known| known != life) =>
                {
                    (returned, back) = (witness.now, false);
                }
                Event::Measured(Evidence::Standing(standing))
                    if !back && health.state == NodeState::Up =>
                {
                    let reference = standing.reference(witness.now, MONITORED.patience());
                    prop_assert!(standing.includes(returned.min(reference)));
                    back = true;
                }
                _ => prop_assert!(back || health.state != NodeState::Up, "not by anything else"),
            }
        }
    }
}
