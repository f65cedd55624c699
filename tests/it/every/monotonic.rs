//! What a client has seen it sees in its next requests, in whichever process, where that is wanted.

use diesel_routed::{
    ClusterConfig, Context, MonotonicReads, NodeConfig, RoutedConnectionManager, Strategy,
};

use super::backend::*;
use super::health::{Known, SOON, watched};
use crate::support::wait_until;

/// As another process has it: only the first so many replicas are known.
fn elsewhere(db: &Db, replicas: &[usize]) -> Pool {
    let node = |place: usize| NodeConfig::new(db.cluster.url(place)).name(&format!("n{place}"));
    let config = replicas
        .iter()
        .fold(ClusterConfig::new(node(0)), |config, place| {
            config.replica(node(*place))
        });
    let pool = pool(across(config));
    warm(&pool);
    pool
}

fn across(config: ClusterConfig) -> ClusterConfig {
    patient(watched(config)).monotonic_reads(MonotonicReads::AcrossRequests)
}

/// One request: the notes that it reads, from where, and the token that it answers with.
fn request(pool: &Pool, token: Option<&str>) -> (Vec<String>, String, Option<String>) {
    let context = Context::resume(token.unwrap_or_default());
    let (bodies, who) = context.run(|| {
        let mut conn = pool.get().unwrap();
        conn.distributed(|conn| (bodies(conn), who(conn)))
    });
    (bodies, who, context.token())
}

/// Three processes, which differ in the replicas that they prefer or know.
struct Processes {
    first: Pool,
    second: Pool,
    both: Pool,
}

fn processes(db: &Db) -> Processes {
    let first = pool(across(crate::kit::config(&db.cluster)).strategy(Strategy::Failover));
    warm(&first);
    Processes {
        first,
        second: elsewhere(db, &[2]),
        both: elsewhere(db, &[1, 2]),
    }
}

/// The first replica shows a note that the second lacks; a client that has seen it.
fn has_seen(db: &Db, first: &Pool) -> String {
    db.cluster.pause_replication(2);
    db.cluster.sql(0, "INSERT INTO note (body) VALUES ('news')");
    let mut token = None;
    wait_until("the news is read from the first replica", SOON, || {
        let (bodies, who, answered) = request(first, None);
        token = answered;
        who == "n1" && !bodies.is_empty()
    });
    token.expect("not every replica has it, and it was read")
}

#[test]
fn the_next_request_sees_nothing_older_in_whichever_process() {
    let db = db_with(2, across);
    let Processes {
        first,
        second,
        both,
    } = processes(&db);
    let token = has_seen(&db, &first);
    assert!(token.len() < 200, "{token}");
    for _ in 0..5 {
        let (bodies, who, _) = request(&second, Some(&token));
        assert_eq!((bodies, who.as_str()), (vec!["news".to_owned()], "n0"));
        let (bodies, who, _) = request(&both, Some(&token));
        assert_eq!((bodies, who.as_str()), (vec!["news".to_owned()], "n1"));
    }
    assert_eq!(request(&second, None).1, "n2", "who has seen nothing");
    db.cluster.kill(1);
    Known::to(&both).wait("n1", "down");
    let (bodies, who, token) = request(&both, Some(&token));
    assert_eq!((bodies, who.as_str()), (vec!["news".to_owned()], "n0"));
    let token = token.expect("what the primary has shown counts, too");
    assert_eq!(request(&both, Some(&token)).1, "n0");
    db.cluster.resume_replication(2);
    wait_until("the second replica serves the client", SOON, || {
        let (bodies, who, _) = request(&both, Some(&token));
        assert_eq!(bodies, ["news"], "from wherever it reads");
        who == "n2"
    });
}

#[test]
fn what_was_written_and_what_was_seen_are_both_carried() {
    let db = db_with(2, across);
    let Processes { first, both, .. } = processes(&db);
    let token = has_seen(&db, &first);
    db.cluster.pause_replication(1);
    let context = Context::resume(&token);
    context.run(|| write(&mut first.get().unwrap(), "own"));
    let token = context.token().expect("both are missing somewhere");
    let (bodies, who, _) = request(&both, Some(&token));
    let where_it_is = (bodies.len(), who.as_str());
    assert_eq!(where_it_is, (2, "n0"), "its own is missing on both");
    db.cluster.resume_replication(1);
    wait_until("the first replica serves the client", SOON, || {
        let (bodies, who, _) = request(&both, Some(&token));
        assert_eq!(bodies.len(), 2, "from wherever it reads");
        who == "n1"
    });
}

#[test]
fn without_it_a_read_leaves_no_token() {
    let db = db_with(1, |config| patient(watched(config)));
    warm(&db.pool);
    db.cluster.pause_replication(1);
    write(
        &mut Context::new().run(|| db.pool.get().unwrap()),
        "by another",
    );
    let (_, who, token) = request(&db.pool, None);
    assert_eq!((who.as_str(), token), ("n1", None));
}

#[test]
fn it_does_not_go_with_reads_that_are_spread() {
    use diesel_routed::Affinity;
    let config = ClusterConfig::new("primary")
        .affinity(Affinity::Query)
        .monotonic_reads(MonotonicReads::AcrossRequests);
    let error = RoutedConnectionManager::<Plain>::new(config).unwrap_err();
    assert!(error.to_string().contains("affinity"), "{error}");
}
