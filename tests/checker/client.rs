//! The clients: what each of them knows, and carries from one request to the next.

use rand::Rng;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

use super::browser::Cookies;
use super::plan::{Access, Monotonic, dice};

pub const CLIENTS: i32 = 12;
/// Every client has two rows; a browser's tabs have one each.
pub const ROWS: i32 = 2 * CLIENTS;

/// From so many on a browser's tabs wait for each other.
const MANY_COOKIES: usize = 8;

/// What a client carries from one request to the next.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Carried {
    Token(Option<String>),
    Cookies(Cookies),
}

/// Versions that were shown: the row's, the same by its log, and the neighbour's.
pub type Shown = [i64; 3];

/// A request and what its client knows.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    pub row: i32,
    /// Somebody else's row, or that of the other tab.
    pub neighbour: i32,
    pub seed: u64,
    pub access: Access,
    pub monotonic: Monotonic,
    pub carried: Carried,
    /// It must see this version of its row, or a later one.
    pub floor: i64,
    /// And this one of the other.
    pub neighbour_floor: i64,
    /// And nothing older than it was shown before, by what is looked at.
    pub shown: Shown,
    /// No later one than this was ever written.
    pub newest: i64,
    /// The first number that no write was given yet.
    pub next: i64,
}

/// What came of a request.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    pub token: Option<String>,
    pub cookies: Cookies,
    pub acknowledged: Vec<i64>,
    /// Their writes failed, and may have left something.
    pub unknown: Vec<i64>,
    pub shown: Shown,
    pub next: i64,
    pub operations: u64,
    pub reads: u64,
    pub reads_on_replicas: u64,
    /// Transactions on a replica that was killed.
    pub cut: u64,
    pub violations: Vec<String>,
    pub errors: Vec<String>,
}

/// What a client knows of a row that nobody else writes.
pub struct Row {
    pub id: i32,
    floor: i64,
    /// By itself, and by its log.
    shown: [i64; 2],
    newest: i64,
    next: i64,
    pub acknowledged: Vec<i64>,
    pub unknown: Vec<i64>,
}

/// A client; its requests come to any thread of any process.
pub struct Client {
    dice: StdRng,
    carried: Carried,
    /// Whether that says what it was shown.
    monotonic: Option<Monotonic>,
    /// A program uses the first alone, and the other is somebody else's to it.
    pub rows: [Row; 2],
    /// A program's tab that knows less: its token and what it had to see then.
    old: Option<(Option<String>, i64, Shown)>,
}

impl Client {
    /// Every other one is a browser with two tabs.
    pub fn new(id: i32, seed: u64) -> Self {
        Self {
            dice: dice(seed.wrapping_mul(1_000).wrapping_add(id as u64)),
            carried: match id % 2 {
                0 => Carried::Token(None),
                _ => Carried::Cookies(Cookies::new()),
            },
            monotonic: (id % 4 < 2).then_some(Monotonic::AcrossRequests),
            rows: [2 * id, 2 * id + 1].map(Row::new),
            old: None,
        }
    }

    /// A throw of the client's own dice.
    pub fn tosses_heads(&mut self) -> bool {
        self.dice.random()
    }

    /// Its next requests: one, or two that run at the same time.
    pub fn orders(&mut self) -> Vec<Order> {
        if self.dice.random_ratio(1, 30) {
            self.forget();
        }
        let Carried::Cookies(cookies) = &self.carried else {
            return vec![self.order_of_program()];
        };
        // one more takes the place of one that another response may have taken as well
        let many = cookies.len() >= MANY_COOKIES;
        let mut orders = vec![self.order(0), self.order(1)];
        if self.dice.random() || many {
            orders.remove(self.dice.random_range(0..2));
        }
        orders
    }

    /// It comes back another day with empty hands, and may expect nothing.
    fn forget(&mut self) {
        self.old = None;
        match &mut self.carried {
            Carried::Token(token) => *token = None,
            Carried::Cookies(cookies) => cookies.clear(),
        }
        for row in &mut self.rows {
            (row.floor, row.shown) = (0, [0; 2]);
        }
    }

    fn order_of_program(&mut self) -> Order {
        let old = self.dice.random_ratio(1, 5).then(|| self.old.clone());
        let order = self.order(0);
        match old.flatten() {
            Some((token, floor, shown)) => Order {
                access: Access::ReadOnly,
                carried: Carried::Token(token),
                floor,
                shown,
                ..order
            },
            None => order,
        }
    }

    fn order(&mut self, at: usize) -> Order {
        let (row, other) = (&self.rows[at], &self.rows[1 - at]);
        Order {
            row: row.id,
            // of programs nobody writes the second row
            neighbour: match self.carried {
                Carried::Token(_) => (row.id + 2) % ROWS,
                Carried::Cookies(_) => other.id,
            },
            seed: self.dice.random(),
            access: Access::ReadWrite,
            monotonic: self.monotonic.unwrap_or(match self.dice.random() {
                true => Monotonic::WithinRequest,
                false => Monotonic::Nowhere,
            }),
            carried: self.carried.clone(),
            floor: row.floor,
            neighbour_floor: other.floor,
            shown: self.shown(at),
            newest: row.newest,
            next: row.next,
        }
    }

    /// What the client was shown, as far as its token says so.
    fn shown(&self, at: usize) -> Shown {
        let [newest, logged] = self.rows[at].shown;
        match self.monotonic {
            Some(_) => [newest, logged, self.rows[1 - at].shown[0]],
            None => Shown::default(),
        }
    }

    /// Takes the response to a request.
    pub fn take(&mut self, order: &Order, outcome: &Outcome) {
        if order.access == Access::ReadOnly {
            return;
        }
        let (floor, shown) = (self.rows[0].floor, self.shown(0));
        match &mut self.carried {
            Carried::Token(token) => {
                if self.dice.random_ratio(1, 4) {
                    self.old = Some((token.take(), floor, shown));
                }
                token.clone_from(&outcome.token);
            }
            Carried::Cookies(cookies) => cookies.extend(outcome.cookies.clone()),
        }
        let [row, other] = &mut self.rows;
        let (row, other) = match row.id == order.row {
            true => (row, other),
            false => (other, row),
        };
        let [newest, logged, neighbour] = outcome.shown;
        row.show([newest, logged]);
        other.show([neighbour, 0]);
        row.take(outcome);
    }
}

impl Row {
    fn new(id: i32) -> Self {
        Self {
            id,
            floor: 0,
            shown: [0; 2],
            newest: 0,
            next: 1,
            acknowledged: vec![],
            unknown: vec![],
        }
    }

    fn show(&mut self, versions: [i64; 2]) {
        for (shown, version) in self.shown.iter_mut().zip(versions) {
            *shown = version.max(*shown);
        }
    }

    fn take(&mut self, outcome: &Outcome) {
        self.next = outcome.next;
        self.acknowledged.extend(&outcome.acknowledged);
        self.unknown.extend(&outcome.unknown);
        self.floor = outcome.acknowledged.last().copied().unwrap_or(self.floor);
        let written = outcome.acknowledged.iter().chain(&outcome.unknown);
        self.newest = written.copied().fold(self.newest, i64::max);
    }
}
