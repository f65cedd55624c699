//! Interleavings that only MariaDB has. The numbers are those of docs/consistency.md, which also names
//! the tests that stand elsewhere.

use diesel::connection::SimpleConnection;
use diesel_routed::Context;

use crate::kit::config;
use crate::kit::mariadb::*;
use crate::kit_health::mariadb::*;
use crate::kit_pools::mariadb::{plain, pool_of, sized};
use crate::support::wait_until;

/// The first statement of a batch is done when the server begins to refuse.
#[test]
fn n13_a_batch_that_is_refused_in_its_middle_is_not_sent_again() {
    let cluster = cluster(1);
    let pool = pool_of(2, watched(sized(&cluster, 4, 4)).checkout_timeout(SOON));
    let db = Db { pool, cluster };
    Known::to(&db.pool).wait_for_all();
    let mut gate = plain(&db, 0);
    gate.batch_execute("DO GET_LOCK('gate', 0)")
        .expect("it is free");
    let batch = "INSERT INTO note (body) VALUES ('first'); DO GET_LOCK('gate', 60);
                 INSERT INTO note (body) VALUES ('second')";
    let result = std::thread::scope(|scope| {
        let run = || db.pool.get().unwrap().batch_execute(batch);
        let running = scope.spawn(run);
        let waits = "SELECT count(*) FROM information_schema.PROCESSLIST WHERE state = 'User lock'";
        wait_until("it is in its middle", SOON, || {
            db.cluster.sql(0, waits) == "1"
        });
        db.cluster.wait_replicated();
        db.cluster.switch_over(0, 1);
        Known::to(&db.pool).wait("n1", "up");
        drop(gate);
        running.join().expect("no panic")
    });
    let error = result.expect_err("the old primary refuses").to_string();
    assert!(error.contains("--read-only"), "{error}");
    db.cluster.wait_replicated();
    for node in [0, 1] {
        assert_eq!(
            db.cluster.sql(node, "SELECT body FROM note"),
            "first",
            "n{node}"
        );
    }
}

#[test]
fn n17_no_statement_lifts_the_read_only_mode_of_a_replicas_session() {
    let db = db_with(1, patient);
    let add_note = "CREATE FUNCTION add_note(b VARCHAR(200)) RETURNS INT MODIFIES SQL DATA BEGIN
        INSERT INTO note (body) VALUES (b);
        RETURN 1;
    END";
    sql(&mut db.pool.get().unwrap(), add_note).expect("it is new");
    db.cluster.wait_replicated();
    pause(&db);
    db.cluster.set_writable(1);
    let lifting = [
        "SET SESSION TRANSACTION READ WRITE",
        "SET tx_read_only = 0",
        "SET @@session.tx_read_only = DEFAULT",
        "START TRANSACTION READ WRITE; COMMIT",
    ];
    for lifting in lifting {
        Context::new().run(|| {
            let mut conn = db.pool.get().unwrap();
            conn.distributed(|conn| {
                assert_eq!(who(conn), "n1");
                batch(conn, lifting);
            });
        });
        Context::new().run(|| {
            let mut conn = db.pool.get().unwrap();
            conn.distributed(|conn| {
                assert_eq!(who(conn), "n1");
                sql(conn, "SELECT add_note('own')").expect("the primary takes it");
            });
        });
        assert_eq!(
            db.cluster.sql(1, "SELECT count(*) FROM note"),
            "0",
            "{lifting}"
        );
    }
    assert_eq!(db.cluster.sql(0, "SELECT count(*) FROM note"), "4");
}

/// What a replica has written itself, or only logged, says nothing of what it has applied.
#[test]
fn n18_only_what_a_replica_has_applied_counts_in_every_domain() {
    let db = db_with(1, patient);
    let other = pool(patient(config(&db.cluster)));
    // who may choose a domain
    db.cluster.sql(0, "GRANT BINLOG REPLAY ON *.* TO app@'%'");
    db.cluster.wait_replicated();
    warm(&other);
    pause(&db);
    db.cluster.set_writable(1);
    for _ in 0..20 {
        db.cluster.sql(1, "CREATE OR REPLACE TABLE errant (id INT)");
    }
    let mut conn = db.pool.get().unwrap();
    batch(&mut conn, "SET SESSION gtid_domain_id = 5");
    write(&mut conn, "of another domain");
    batch(&mut conn, "SET SESSION gtid_domain_id = 0");
    write(&mut conn, "own");
    let token = conn.token().expect("the replica lacks it");
    let text = {
        use base64::Engine;
        let body = token.strip_prefix("1.").expect("version 1");
        let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(body);
        String::from_utf8_lossy(&bytes.expect("base64")).into_owned()
    };
    let of_both = text.contains("mariadb:0-") && text.contains(",5-");
    assert!(of_both, "{text}");
    for _ in 0..5 {
        let seen = Context::resume(&token).run(|| other.get().unwrap().distributed(bodies));
        assert_eq!(seen, ["of another domain", "own"]);
    }
}
