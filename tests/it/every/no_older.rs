//! What a context has seen its next blocks see, whichever node they read from.

use diesel::result::QueryResult;
use diesel_routed::{Consistency, Context, Reason};

use super::backend::*;
use super::health::{Known, SOON, watched};
use crate::support::wait_until;

fn has_seen(db: &Db) -> Context {
    has_seen_by(db, |conn| conn.distributed(is_news_on_the_first))
}

/// The first replica has a note, which the second lacks; returns a context that has seen it.
fn has_seen_by(db: &Db, read: impl Fn(&mut Conn) -> bool) -> Context {
    warm(&db.pool);
    db.cluster.pause_replication(2);
    db.cluster.sql(0, "INSERT INTO note (body) VALUES ('news')");
    let mut context = Context::new();
    wait_until("the news is read from the first replica", SOON, || {
        context = Context::new();
        context.run(|| read(&mut db.pool.get().unwrap()))
    });
    context
}

fn is_news_on_the_first(conn: &mut Conn) -> bool {
    who(conn) == "n1" && !bodies(conn).is_empty()
}

#[test]
fn what_a_read_only_transaction_has_seen_the_next_block_sees() {
    let db = db_with(2, |config| patient(watched(config)));
    let snapshot = |conn: &mut Conn| -> QueryResult<bool> {
        conn.read_only_transaction(|conn| Ok(is_news_on_the_first(conn)))
    };
    let context = has_seen_by(&db, |conn| snapshot(conn).expect("a replica serves it"));
    db.cluster.kill(1);
    Known::to(&db.pool).wait("n1", "down");
    let seen = context.run(|| db.pool.get().unwrap().distributed(bodies));
    assert_eq!(seen, ["news"], "time goes on");
}

#[test]
fn when_the_replica_is_gone_the_next_block_reads_where_nothing_is_older() {
    let db = db_with(2, |config| patient(watched(config)));
    let context = has_seen(&db);
    db.cluster.kill(1);
    Known::to(&db.pool).wait("n1", "down");
    context.run(|| {
        let mut conn = db.pool.get().unwrap();
        for _ in 0..5 {
            assert_eq!(conn.distributed(bodies), ["news"], "time goes on");
        }
        let route = conn.last_route().unwrap();
        assert_eq!((&*route.node, route.reason), ("n0", Reason::NotCaughtUp));
        let old = conn.distributed_with(Consistency::Eventual, bodies);
        assert!(old.is_empty(), "who asks for nothing gets it");
        conn.distributed(|conn| {
            conn.distributed_with(Consistency::Eventual, bodies);
            assert_eq!(bodies(conn), ["news"], "and nobody else");
        });
    });
    let other = Context::new().run(|| db.pool.get().unwrap().distributed(who));
    assert_eq!(other, "n2", "who has seen nothing reads on");
    db.cluster.resume_replication(2);
    wait_until("the second replica serves it, too", SOON, || {
        context.run(|| {
            let mut conn = db.pool.get().unwrap();
            conn.distributed(|conn| {
                assert_eq!(bodies(conn), ["news"]);
                who(conn) == "n2"
            })
        })
    });
}

#[test]
fn a_context_inside_another_hands_on_what_it_has_seen() {
    let db = db_with(2, |config| patient(watched(config)));
    let inner = has_seen(&db);
    let outer = Context::new();
    outer.run(|| inner.run(|| ()));
    db.cluster.kill(1);
    Known::to(&db.pool).wait("n1", "down");
    let seen = outer.run(|| db.pool.get().unwrap().distributed(bodies));
    assert_eq!(seen, ["news"]);
}
