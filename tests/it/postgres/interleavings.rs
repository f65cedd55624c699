//! Interleavings that only PostgreSQL has. The numbers are those of docs/consistency.md, which also
//! names the tests that stand elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use diesel::prelude::*;
use diesel::sql_types::Text;
use diesel_routed::{ClusterConfig, Context, Decision, Event, Reason, Role};

use super::log::log_statements;
use super::settings::set;
use crate::kit::config;
use crate::kit::postgres::*;
use crate::kit_health::postgres::*;
use crate::kit_pools::postgres::{pool_of, sized};
use crate::support::{Cluster, wait_until};

/// What a request with this token sees in a block, and where.
fn read_with(pool: &Pool, token: &str) -> (Vec<String>, String) {
    Context::resume(token).run(|| {
        let read = |conn: &mut Conn| (bodies(conn), who(conn));
        pool.get().unwrap().distributed(read)
    })
}

/// n1 is promoted, while n2 follows the old primary, further than n1 has come.
fn two_timelines(grant: &str) -> Db {
    let cluster = cluster(2);
    cluster.sql(0, grant);
    cluster.wait_replicated();
    cluster.stop_receiving(1);
    let much = "INSERT INTO note (body) SELECT repeat('x', 200) FROM generate_series(1, 2000)";
    cluster.sql(0, much);
    cluster.sql(0, "DELETE FROM note");
    cluster.wait_replicated();
    cluster.promote(1);
    let pool = pool_of(4, watched(sized(&cluster, 4, 4)).checkout_timeout(SOON));
    Db { pool, cluster }
}

#[test]
fn n05_a_position_is_not_reached_on_another_timeline() {
    for grant in ["SELECT", SEE_REPLICATION] {
        let db = two_timelines(grant);
        let request = Context::resume("");
        request.run(|| write(&mut db.pool.get().unwrap(), "own"));
        let [own, other] = [1, 2].map(|node| {
            let lsn = "SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
                       ELSE pg_current_wal_insert_lsn() END - '0/0'";
            db.cluster.sql(node, lsn).parse::<u64>().expect("a number")
        });
        assert!(own < other, "by the number alone n2 has it");
        let token = request.token().expect("n2 lacks it");
        for _ in 0..50 {
            let seen = request.run(|| db.pool.get().unwrap().distributed(bodies));
            assert_eq!(seen, ["own"]);
            assert_eq!(read_with(&db.pool, &token).0, ["own"]);
        }
    }
}

/// After the first look nobody probes.
fn undisturbed(config: ClusterConfig) -> ClusterConfig {
    let config = patient(config).check_interval(Duration::ZERO);
    config.check_ttl(Duration::from_secs(3600))
}

#[test]
fn n12_a_position_behind_a_page_header_is_reached_on_an_idle_primary() {
    let db = db_with(1, undisturbed);
    let other = pool(undisturbed(config(&db.cluster)));
    warm(&other);
    for _ in 0..3 {
        let mut conn = db.pool.get().unwrap();
        write(&mut conn, "own");
        // no standby replays the header that now stands before the next record
        db.cluster.sql(0, "SELECT pg_switch_wal()");
        let token = conn.token().expect("the replica is not known to have it");
        // within which nobody writes another record
        let moment = Duration::from_secs(10);
        wait_until("the replica serves", moment, || {
            read_with(&other, &token).1 == "n1"
        });
    }
}

/// What a server has logged between two texts, and before the first.
fn logged_around(db: &Db, node: usize, from: &str, to: &str) -> (String, String) {
    let log = db.cluster.dir().join(format!("n{node}/log"));
    let log = std::fs::read_to_string(log).expect("the server logs there");
    let (before, rest) = log.split_once(from).expect("it has begun");
    let (between, _) = rest.split_once(to).expect("it has ended");
    (before.to_owned(), between.to_owned())
}

#[test]
fn n16_a_replica_is_asked_before_the_transaction_begins_and_never_inside() {
    let db = db_with(1, undisturbed);
    let other = pool(undisturbed(config(&db.cluster)));
    warm(&other);
    let mut conn = db.pool.get().unwrap();
    write(&mut conn, "own");
    let token = conn.token().expect("the replica is not known to have it");
    db.cluster.wait_replicated();
    log_statements(&db.cluster, 1);
    Context::resume(&token).run(|| {
        let mut conn = other.get().unwrap();
        let read = |conn: &mut Conn| QueryResult::Ok((bodies(conn), who(conn)));
        let mut snapshot = conn.build_transaction().read_only().repeatable_read();
        let seen = snapshot.run(read).expect("it commits");
        assert_eq!(seen, (vec!["own".to_owned()], "n1".to_owned()));
    });
    let (before, inside) = logged_around(&db, 1, "BEGIN", "COMMIT");
    assert!(
        before.contains("pg_last_wal_replay_lsn"),
        "it was asked: {before}"
    );
    assert_eq!(
        inside.matches("LOG:").count(),
        3,
        "two reads and the end: {inside}"
    );
}

/// As long as nobody confirms a commit the primary shows it to nobody; a standby does at once.
#[test]
fn n24_with_synchronous_replication_a_replica_may_be_ahead_of_its_primary() {
    let db = db_with(1, patient);
    warm(&db.pool);
    set(&db.cluster, 0, "synchronous_standby_names = 'nobody'");
    // whether commits wait is told to the others by the checkpointer, which reads its settings first
    db.cluster.sql(0, "CHECKPOINT");
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    std::thread::scope(|scope| {
        scope.spawn(|| write(&mut db.pool.get().unwrap(), "unconfirmed"));
        wait_until("it waits", SOON, || db.cluster.sql(0, waits) == "1");
        let mut conn = db.pool.get().unwrap();
        wait_until("the replica shows it", SOON, || {
            conn.distributed(bodies) == ["unconfirmed"]
        });
        assert_eq!(conn.primary(bodies), [""; 0], "the primary does not");
        set(&db.cluster, 0, "synchronous_standby_names = ''");
    });
}

const ADD_NOTE: &str = "
CREATE TABLE note (id SERIAL PRIMARY KEY, body VARCHAR(200) NOT NULL);
CREATE FUNCTION add_note(body text) RETURNS integer LANGUAGE sql AS
    $$ INSERT INTO note (body) VALUES (body) RETURNING id $$;
";

diesel::define_sql_function! { fn add_note(body: Text) -> Integer; }

/// Two servers that would both take a write, with a function that writes.
fn writable() -> Db {
    let cluster = Cluster::postgres_writable(1);
    for node in [0, 1] {
        cluster.try_app_sql(node, ADD_NOTE).unwrap();
    }
    let pool = pool(patient(config(&cluster)).fixed_roles());
    warm(&pool);
    Db { pool, cluster }
}

#[test]
fn n17_no_statement_lifts_the_read_only_mode_of_a_replicas_session() {
    let db = writable();
    for lifting in [
        "RESET ALL",
        "DISCARD ALL",
        "SET default_transaction_read_only = off",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
        "SELECT set_config('default_transaction_read_only', 'off', false)",
        "BEGIN READ WRITE; COMMIT",
    ] {
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
        let count = |node| db.cluster.sql(node, "SELECT count(*) FROM note");
        assert_eq!(count(1), "0", "{lifting}");
    }
    assert_eq!(db.cluster.sql(0, "SELECT count(*) FROM note"), "6");
}

#[test]
fn n35_a_refusal_is_learned_for_its_cluster_and_never_from_the_users_own_transaction() {
    let db = writable();
    let query = || diesel::select(add_note("own"));
    let reason = |pool: &Pool| {
        let mut conn = pool.get().unwrap();
        let Decision { target, reason, .. } =
            Context::new().run(|| conn.distributed(|conn| conn.explain(&query()).unwrap()));
        assert_eq!(target == Role::Replica, reason == Reason::Distributed);
        reason
    };
    let mut conn = db.pool.get().unwrap();
    let refused = conn.read_only_transaction(|conn| query().execute(conn));
    refused.expect_err("it is read-only, as the user wants it");
    assert_eq!(reason(&db.pool), Reason::Distributed, "nothing was learned");
    Context::new().run(|| conn.distributed(|conn| query().execute(conn)).unwrap());
    assert_eq!(reason(&db.pool), Reason::ReadOnlyRefused, "now it was");
    // its server replicates nothing, and has to come as far as the other for a new cluster to use it
    db.cluster.sql(1, "SELECT pg_switch_wal()");
    let other = pool(patient(config(&db.cluster)).fixed_roles());
    warm(&other);
    assert_eq!(
        reason(&other),
        Reason::Distributed,
        "not by another cluster"
    );
}

#[test]
fn n36_a_token_of_another_system_of_the_same_name_holds_by_time_alone() {
    let brief = |config: ClusterConfig| {
        let config = config.max_lag(Duration::from_secs(2));
        config.sticky_for(Duration::from_secs(8))
    };
    let (one, two) = (db_with(1, brief), db_with(1, brief));
    one.cluster.pause_replication(1);
    let mut conn = one.pool.get().unwrap();
    write(&mut conn, "own");
    let token = conn.token().expect("its replica lacks it");
    warm(&two.pool);
    let context = Context::resume(&token);
    wait_until("the replica serves", SOON, || {
        context.run(|| two.pool.get().unwrap().distributed(who)) == "n1"
    });
}

/// Commits that the primary acknowledges before they are safe, and loses.
#[test]
fn n41_lost_commits_are_told_and_not_waited_for() {
    let went_back = Arc::new(AtomicBool::new(false));
    let heard = Arc::clone(&went_back);
    let db = db_with(1, |config| {
        let config = strict(config)
            .sticky_for(4 * MAX_LAG)
            .checkout_timeout(SOON);
        config.observer(move |event: &Event<'_>| {
            let lost = matches!(event, Event::PositionWentBack { node: "n0", .. });
            heard.fetch_or(lost, Ordering::SeqCst);
        })
    });
    let known = Known::to(&db.pool);
    known.wait_for_all();
    set(&db.cluster, 0, "wal_writer_delay = '10s'");
    set(&db.cluster, 0, "synchronous_commit = off");
    let request = Context::resume("");
    let much = "INSERT INTO note (body) SELECT repeat('x', 200) FROM generate_series(1, 1000)";
    request
        .run(|| sql(&mut db.pool.get().unwrap(), much))
        .expect("it is acknowledged");
    let token = request.token().expect("the replica lacks it");
    db.pool.get().unwrap().cluster().check();
    db.cluster.kill(0);
    known.wait("n0", "down");
    db.cluster.restart(0);
    assert_eq!(
        db.cluster.sql(0, "SELECT count(*) FROM note"),
        "0",
        "they are lost"
    );
    known.wait("n0", "up");
    wait_until("it is told", SOON, || went_back.load(Ordering::SeqCst));
    for context in [request, Context::resume(&token)] {
        wait_until("the replica serves", SOON, || {
            context.run(|| db.pool.get().unwrap().distributed(who)) == "n1"
        });
    }
}

#[test]
fn n44_to_explain_a_statement_by_running_it_marks_as_the_statement_does() {
    let db = writable();
    Context::new().run(|| {
        let mut conn = db.pool.get().unwrap();
        sql(&mut conn, "EXPLAIN ANALYZE SELECT add_note('own')").expect("it runs");
        assert_eq!(reason(&conn), Reason::PrimaryMode, "outside a block");
        assert_eq!(conn.distributed(bodies), ["own"]);
    });
}
