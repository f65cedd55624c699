//! A look-up that finds nothing on a replica is asked of the primary, where that is wanted.

use diesel::prelude::*;
use diesel_routed::Reason;

use super::backend::*;

fn find(conn: &mut Conn, id: i32) -> QueryResult<Option<String>> {
    let body = note::table.find(id).select(note::body);
    body.first(conn).optional()
}

/// What a block finds by looking twice if need be, and how often.
fn found(conn: &mut Conn, id: i32) -> (Option<String>, u32) {
    let mut looks = 0;
    let found = conn.distributed(|conn| {
        conn.or_primary(|conn| {
            looks += 1;
            find(conn, id)
        })
    });
    (found.unwrap(), looks)
}

#[test]
fn nothing_on_a_replica_is_looked_for_once_more_on_the_primary() {
    let db = db_with(1, patient);
    write(&mut db.pool.get().unwrap(), "old");
    db.cluster.wait_replicated();
    pause(&db);
    write(&mut db.pool.get().unwrap(), "new");
    let mut conn = db.pool.get().unwrap();
    let new = db.cluster.sql(0, "SELECT max(id) FROM note");
    let new: i32 = new.parse().unwrap();
    let plain = conn.distributed(|conn| find(conn, new)).unwrap();
    assert_eq!(plain, None, "the replica lacks it");
    assert_eq!(found(&mut conn, new), (Some("new".to_owned()), 2));
    let route = conn.last_route().unwrap();
    assert_eq!((&*route.node, route.reason), ("n0", Reason::Forced));
    assert_eq!(found(&mut conn, 1), (Some("old".to_owned()), 1));
    assert_eq!(&*conn.last_route().unwrap().node, "n1");
    assert_eq!(found(&mut conn, 999), (None, 2), "it is nowhere");
    conn.distributed(|conn| {
        conn.or_primary(|conn| find(conn, new)).unwrap();
        assert_eq!(who(conn), "n0", "the block sees nothing older");
    });
}

#[test]
fn what_was_asked_of_the_primary_is_not_asked_again() {
    let db = db(1);
    let mut conn = db.pool.get().unwrap();
    let mut looks = 0;
    let outside = conn.or_primary(|conn| {
        looks += 1;
        find(conn, 1)
    });
    assert_eq!((outside.unwrap(), looks), (None, 1));
    let mut looks = 0;
    let inside = conn.read_only_transaction(|conn| {
        conn.or_primary(|conn| {
            looks += 1;
            find(conn, 1)
        })
    });
    assert_eq!(
        (inside.unwrap(), looks),
        (None, 1),
        "a snapshot is left by nobody"
    );
    let error = conn.distributed(|conn| {
        conn.or_primary(|conn| {
            note::table
                .select(note::body)
                .first::<String>(conn)
                .map(Some)
        })
    });
    assert_eq!(error, Err(diesel::NotFound));
}
