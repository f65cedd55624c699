//! Late replicas that serve where nobody better can.

use diesel_routed::{Context, Fallback, Reason};

use super::backend::*;
use super::health::*;
use super::pools::*;

#[test]
fn fallback_stale_reads_from_a_late_replica_but_never_below_an_own_write() {
    let db = db_with(1, |config| strict(config).fallback(Fallback::Stale));
    let known = Known::to(&db.pool);
    known.wait("n1", "up");
    db.cluster.pause_replication(1);
    db.cluster
        .sql(0, "INSERT INTO note (body) VALUES ('of somebody else')");
    known.wait("n1", "lagging");
    Context::new().run(|| {
        let mut conn = db.pool.get().unwrap();
        assert_eq!(conn.distributed(bodies), [""; 0], "late, but it answers");
        assert_eq!(block_reads_from(&mut conn), "n1");
        write(&mut conn, "mine");
        assert_eq!(
            conn.distributed(bodies).len(),
            2,
            "nothing older than the own write"
        );
        assert_eq!(block_reads_from(&mut conn), "n0");
    });
}

#[test]
fn it_leaves_an_own_write_to_the_primary() {
    let db = paused_db_with(1, |config| watched(config).fallback(Fallback::Stale));
    Context::new().run(|| {
        let mut conn = db.pool.get().unwrap();
        write(&mut conn, "mine");
        for _ in 0..3 {
            assert_eq!(conn.distributed(bodies), ["mine"]);
            assert_eq!(reason(&conn), Reason::NotCaughtUp);
        }
    });
}

#[test]
fn of_two_late_ones_the_less_late_serves() {
    let cluster = cluster(2);
    let pool = pool_of(2, strict(sized(&cluster, 2, 2)).fallback(Fallback::Stale));
    let known = Known::to(&pool);
    for (node, body) in [(1, "first"), (2, "second")] {
        known.wait(&format!("n{node}"), "up");
        cluster.pause_replication(node);
        cluster.sql(0, &format!("INSERT INTO note (body) VALUES ('{body}')"));
        known.wait(&format!("n{node}"), "lagging");
    }
    for _ in 0..20 {
        let name = Context::new().run(|| pool.get().unwrap().distributed(who));
        assert_eq!(name, "n2", "it lacks only the second");
    }
}
