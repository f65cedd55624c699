//! What happens to the replicas.

/// A replica: how much it can do, and how much it is said to do.
#[derive(Clone, Copy)]
pub struct Plan {
    /// How many statements it works on at once; the others queue.
    pub slots: usize,
    /// The weight in the configuration.
    pub weight: u32,
}

/// What happens to the first replica.
#[derive(Clone, Copy)]
pub enum Trouble {
    None,
    /// It takes so many times as long for each statement for a while.
    Slow(f64),
    /// It dies, and comes back cold: slow at first, then better and better.
    Dies,
    /// Others keep this part of it busy, unseen by our processes.
    Shared(f64),
}

pub struct Scenario {
    pub name: &'static str,
    pub replicas: [Plan; 4],
    /// Processes of the application, each with its own pools.
    pub processes: usize,
    /// The part of what all replicas can do that is asked for.
    pub load: f64,
    /// The part of the reads that are reports: they take sixty times as long as others.
    pub reports: f64,
    pub trouble: Trouble,
}

const EVEN: [Plan; 4] = [Plan {
    slots: 4,
    weight: 1,
}; 4];

const UNEVEN: [Plan; 4] = [
    Plan {
        slots: 8,
        weight: 4,
    },
    Plan {
        slots: 4,
        weight: 2,
    },
    Plan {
        slots: 2,
        weight: 1,
    },
    Plan {
        slots: 2,
        weight: 1,
    },
];

/// The same, but nobody has said so.
const UNTOLD: [Plan; 4] = [
    Plan {
        slots: 8,
        weight: 1,
    },
    Plan {
        slots: 4,
        weight: 1,
    },
    Plan {
        slots: 2,
        weight: 1,
    },
    Plan {
        slots: 2,
        weight: 1,
    },
];

pub const SCENARIOS: [Scenario; 10] = [
    Scenario {
        name: "one process",
        replicas: EVEN,
        processes: 1,
        load: 0.7,
        reports: 0.0,
        trouble: Trouble::None,
    },
    Scenario {
        name: "equal",
        replicas: EVEN,
        processes: 16,
        load: 0.7,
        reports: 0.0,
        trouble: Trouble::None,
    },
    Scenario {
        name: "a fleet",
        replicas: EVEN,
        processes: 64,
        load: 0.7,
        reports: 0.0,
        trouble: Trouble::None,
    },
    Scenario {
        name: "uneven",
        replicas: UNEVEN,
        processes: 16,
        load: 0.7,
        reports: 0.0,
        trouble: Trouble::None,
    },
    Scenario {
        name: "uneven, untold",
        replicas: UNTOLD,
        processes: 16,
        load: 0.5,
        reports: 0.0,
        trouble: Trouble::None,
    },
    Scenario {
        name: "one slow",
        replicas: EVEN,
        processes: 16,
        load: 0.5,
        reports: 0.0,
        trouble: Trouble::Slow(5.0),
    },
    Scenario {
        name: "one slow, 4 proc.",
        replicas: EVEN,
        processes: 4,
        load: 0.5,
        reports: 0.0,
        trouble: Trouble::Slow(5.0),
    },
    Scenario {
        name: "reports",
        replicas: EVEN,
        processes: 16,
        load: 0.5,
        reports: 0.005,
        trouble: Trouble::None,
    },
    Scenario {
        name: "one dies",
        replicas: EVEN,
        processes: 16,
        load: 0.5,
        reports: 0.0,
        trouble: Trouble::Dies,
    },
    Scenario {
        name: "one shared",
        replicas: EVEN,
        processes: 16,
        load: 0.5,
        reports: 0.0,
        trouble: Trouble::Shared(0.6),
    },
];
