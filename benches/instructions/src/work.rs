//! What is counted: each piece of work, on a plain connection and on a routed one.

use std::hint::black_box;
use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sqlite::SqliteConnection;
use diesel_routed::{ClusterConfig, NodeConfig, RoutedConnectionManager, RoutedPool};

use crate::reads::{CREATE, boxed, typed};

#[derive(Debug, Clone, Copy)]
pub enum Work {
    /// A typed read in a block.
    Typed,
    /// A read by `into_boxed` in a block.
    Boxed,
    /// A typed read on the primary, outside any block.
    Primary,
    /// A handle is taken and given back.
    Handle,
    /// A handle is taken, a block reads once, and the handle is given back.
    Unit,
}

#[derive(Debug, Clone, Copy)]
pub enum On {
    Plain,
    Routed,
}

impl On {
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Routed => "routed",
        }
    }
}

impl Work {
    pub const ALL: [Self; 5] = [
        Self::Typed,
        Self::Boxed,
        Self::Primary,
        Self::Handle,
        Self::Unit,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Typed => "typed",
            Self::Boxed => "boxed",
            Self::Primary => "primary",
            Self::Handle => "handle",
            Self::Unit => "unit",
        }
    }

    /// Does it so many times.
    pub fn run(self, on: On, times: u32) {
        let ids = (0..times).map(|i| (i % 100 + 1) as i32);
        match on {
            On::Plain => self.run_plain(ids),
            On::Routed => self.run_routed(ids),
        }
    }

    fn run_plain(self, ids: impl Iterator<Item = i32>) {
        let mut conn = database();
        // a process with one thread takes shorter ways through the allocator and its locks
        let pool = pool();
        done(typed(&mut *pool.get().expect("a handle is free"), 1));
        match self {
            Self::Typed | Self::Primary | Self::Unit => {
                ids.for_each(|id| done(typed(&mut conn, id)))
            }
            Self::Boxed => ids.for_each(|id| done(boxed(&mut conn, id))),
            Self::Handle => {}
        }
    }

    fn run_routed(self, ids: impl Iterator<Item = i32>) {
        let _keeps_it = database();
        let pool = pool();
        let get = || pool.get().expect("a handle is free");
        get().distributed(|conn| {
            done(typed(conn, 1));
            let route = conn.last_route().expect("one statement");
            assert_eq!(&*route.node, "replica", "blocks read there");
        });
        match self {
            Self::Typed => get().distributed(|conn| ids.for_each(|id| done(typed(conn, id)))),
            Self::Boxed => get().distributed(|conn| ids.for_each(|id| done(boxed(conn, id)))),
            Self::Primary => {
                let mut conn = get();
                ids.for_each(|id| done(typed(&mut *conn, id)));
            }
            Self::Handle => ids.for_each(|_| drop(black_box(get()))),
            Self::Unit => ids.for_each(|id| get().distributed(|conn| done(typed(conn, id)))),
        }
    }
}

/// A database in the memory of this process, there for as long as somebody is connected.
const URL: &str = "file:counted?mode=memory&cache=shared";

fn database() -> SqliteConnection {
    let mut conn = SqliteConnection::establish(URL).expect("SQLite has memory");
    conn.batch_execute(CREATE).expect("the database is new");
    conn
}

fn pool() -> RoutedPool<SqliteConnection> {
    let node = |name| NodeConfig::new(URL).name(name);
    let config = ClusterConfig::new(node("primary"))
        .replica(node("replica"))
        // nobody probes while the statements are counted
        .check_interval(Duration::ZERO)
        .check_ttl(Duration::from_secs(3_600));
    let manager = RoutedConnectionManager::new(config).expect("a right configuration");
    RoutedPool::new(manager).expect("handles are made without I/O")
}

fn done<T>(result: QueryResult<T>) {
    black_box(result.expect("the statement is right"));
}
