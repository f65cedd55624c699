//! A routed read allocates once more than a plain one. A binary of its own: the counter sees every allocation.
#![cfg(feature = "sqlite")]

mod counting;

use counting::allocations;
use diesel::connection::{LoadConnection, SimpleConnection};
use diesel::prelude::*;
use diesel::sqlite::{Sqlite, SqliteConnection};
use diesel_routed::{ClusterConfig, RoutedConnectionManager, RoutedPool};

diesel::table! {
    posts (id) {
        id -> Integer,
        title -> Text,
    }
}

const URL: &str = "file:allocations?mode=memory&cache=shared";

fn typed(conn: &mut impl LoadConnection<Backend = Sqlite>) -> String {
    let query = posts::table.find(1).select(posts::title);
    query.get_result(conn).expect("a post")
}

fn boxed(conn: &mut impl LoadConnection<Backend = Sqlite>) -> String {
    let query = posts::table.into_boxed().filter(posts::id.eq(1));
    let query = query.select(posts::title);
    query.get_result(conn).expect("a post")
}

/// Of a call that is not the first: nothing is prepared or scanned any more.
fn in_second_call<C, R>(conn: &mut C, call: impl Fn(&mut C) -> R) -> usize {
    call(conn);
    let before = allocations();
    call(conn);
    allocations() - before
}

#[test]
fn a_routed_read_allocates_no_more_than_once_for_the_router() {
    let mut plain = SqliteConnection::establish(URL).expect("SQLite has memory");
    plain
        .batch_execute(
            "CREATE TABLE posts (id INTEGER PRIMARY KEY, title TEXT NOT NULL);
             INSERT INTO posts VALUES (1, 'first')",
        )
        .expect("the database is new");
    let config = ClusterConfig::new(URL).replica(URL);
    let manager =
        RoutedConnectionManager::<SqliteConnection>::new(config).expect("a configuration");
    let pool = RoutedPool::new(manager).expect("handles are made without I/O");
    let mut routed = pool.get().expect("a handle is free");
    let bare = in_second_call(&mut plain, typed);
    let on_primary = in_second_call(&mut *routed, typed);
    assert_eq!(
        on_primary, bare,
        "on the primary nothing is allocated besides"
    );
    let in_block = routed.distributed(|conn| in_second_call(conn, typed));
    assert_eq!(
        in_block,
        bare + 1,
        "in a block the query is shared, to be sent again"
    );
    // the text is made by the router and then copied for Diesel, which without it grows it bit by bit
    let bare = in_second_call(&mut plain, boxed);
    let in_block = routed.distributed(|conn| in_second_call(conn, boxed));
    assert!(
        in_block <= bare + 2,
        "a boxed read: {in_block} allocations, and {bare} without the router"
    );
}
