//! The table that the benches read and write.

diesel::table! {
    account (id) {
        id -> Integer,
        owner -> Text,
        balance -> BigInt,
    }
}

pub const ROWS: i32 = 10_000;

pub const POSTGRES: &str = "
    CREATE TABLE account (id integer PRIMARY KEY, owner text NOT NULL, balance bigint NOT NULL);
    INSERT INTO account SELECT i, 'owner ' || i, 0 FROM generate_series(1, 10000) AS i;
    ANALYZE account;";

pub const MARIADB: &str = "
    CREATE TABLE account (id INT PRIMARY KEY, owner VARCHAR(40) NOT NULL, balance BIGINT NOT NULL);
    INSERT INTO account SELECT seq, CONCAT('owner ', seq), 0 FROM seq_1_to_10000;";

/// The rows that a worker reads, one after the other: all, in an order of its own.
#[derive(Debug, Clone)]
pub struct Ids {
    next: i32,
}

impl Ids {
    /// Of the worker with that number.
    pub fn new(worker: i32) -> Self {
        Ids { next: worker * 613 }
    }
}

impl Iterator for Ids {
    type Item = i32;

    fn next(&mut self) -> Option<i32> {
        self.next = (self.next + 7_919) % ROWS;
        Some(self.next + 1)
    }
}
