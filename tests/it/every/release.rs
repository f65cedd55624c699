//! When replicas serve a context again that has written: as soon as they have it.

use std::time::Duration;

use diesel_routed::{Context, Reason};

use super::backend::*;
use crate::support::wait_until;

const SOON: Duration = Duration::from_secs(20);

fn reads(db: &Db, context: &Context) -> (Vec<String>, String) {
    context.run(|| {
        let mut conn = db.pool.get().unwrap();
        let read = |conn: &mut Conn| (bodies(conn), who(conn));
        conn.distributed(read)
    })
}

#[test]
fn a_replica_serves_a_context_again_once_it_has_what_that_wrote() {
    // only `sticky_for` would end it otherwise, in minutes
    let db = db_with(1, patient);
    wait_until("the replica is up", SOON, || {
        block_reads_from(&mut db.pool.get().unwrap()) == "n1"
    });
    db.cluster.pause_replication(1);
    let (writer, other) = (Context::new(), Context::new());
    writer.run(|| write(&mut db.pool.get().unwrap(), "own"));
    for _ in 0..5 {
        db.pool.get().unwrap().cluster().check();
        assert_eq!(
            reads(&db, &writer),
            (vec!["own".to_owned()], "n0".to_owned())
        );
        assert_eq!(
            reads(&db, &other),
            (vec![], "n1".to_owned()),
            "it never left"
        );
    }
    db.cluster.resume_replication(1);
    wait_until("the replica serves it", SOON, || {
        let (bodies, who) = reads(&db, &writer);
        assert_eq!(bodies, ["own"], "from wherever it reads");
        who == "n1"
    });
}

#[test]
fn of_two_replicas_the_one_that_has_it_serves() {
    let db = db_with(2, patient);
    db.cluster.wait_replicated();
    db.pool.get().unwrap().cluster().check();
    db.cluster.pause_replication(1);
    let context = Context::new();
    context.run(|| write(&mut db.pool.get().unwrap(), "own"));
    wait_until("the second replica serves it", SOON, || {
        reads(&db, &context).1 == "n2"
    });
    for _ in 0..30 {
        let (bodies, who) = reads(&db, &context);
        assert_eq!((bodies, who.as_str()), (vec!["own".to_owned()], "n2"));
    }
}

#[test]
fn a_block_goes_on_with_its_replica_once_that_has_what_was_written_meanwhile() {
    let db = db_with(1, patient);
    wait_until("the replica is up", SOON, || {
        block_reads_from(&mut db.pool.get().unwrap()) == "n1"
    });
    Context::new().run(|| {
        let mut conn = db.pool.get().unwrap();
        conn.distributed(|conn| {
            assert_eq!(who(conn), "n1");
            write(&mut db.pool.get().unwrap(), "own");
            db.cluster.wait_replicated();
            wait_until("nothing is missing on the replica", SOON, || {
                conn.cluster().check();
                let decision = conn.explain(&diesel::sql_query("SELECT 1")).unwrap();
                decision.reason == Reason::Pinned
            });
            assert_eq!(
                (bodies(conn), who(conn)),
                (vec!["own".to_owned()], "n1".to_owned())
            );
        });
    });
}
