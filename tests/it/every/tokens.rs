//! Tokens: what one process has written another one reads, from a replica as soon as that has it.

use std::time::Duration;

use diesel_routed::{Context, Reason};

use super::backend::*;
use super::pools::*;

use crate::support::wait_until;

const SOON: Duration = Duration::from_secs(20);

/// Another pool on the same servers, as another process has it: nothing is shared but the token.
fn elsewhere(db: &Db) -> Pool {
    let pool = pool_of(2, patient(crate::kit::config(&db.cluster)));
    pool.get().unwrap().cluster().check();
    pool
}

fn read(pool: &Pool, token: &str) -> (Vec<String>, String, Reason) {
    Context::resume(token).run(|| {
        let mut conn = pool.get().unwrap();
        let (bodies, who) = conn.distributed(|conn| (bodies(conn), who(conn)));
        (bodies, who, reason(&conn))
    })
}

#[test]
fn another_process_reads_what_was_written_from_a_replica_that_has_it() {
    let db = db_with(1, patient);
    let other = elsewhere(&db);
    // or every replica may be known to have it before it is written down
    db.cluster.pause_replication(1);
    let mut conn = db.pool.get().unwrap();
    write(&mut conn, "own");
    let token = conn.token().expect("something was written");
    assert!(token.len() < 200, "{token}");
    db.cluster.resume_replication(1);
    db.cluster.wait_replicated();
    let (bodies, who, _) = read(&other, &token);
    assert_eq!(
        (bodies, who.as_str()),
        (vec!["own".to_owned()], "n1"),
        "asked on the connection, without waiting for the next probe"
    );
}

#[test]
fn until_a_replica_has_it_the_primary_serves_and_then_the_replica() {
    let db = db_with(1, patient);
    let other = elsewhere(&db);
    db.cluster.wait_replicated();
    db.cluster.pause_replication(1);
    let mut conn = db.pool.get().unwrap();
    write(&mut conn, "own");
    let token = conn.token().expect("something was written");
    for _ in 0..5 {
        let (bodies, who, reason) = read(&other, &token);
        assert_eq!((bodies, who.as_str()), (vec!["own".to_owned()], "n0"));
        assert!(
            matches!(reason, Reason::NotCaughtUp | Reason::Stuck),
            "{reason}"
        );
    }
    db.cluster.resume_replication(1);
    wait_until("the replica serves it", SOON, || {
        let (bodies, who, _) = read(&other, &token);
        assert_eq!(bodies, ["own"], "from wherever it reads");
        who == "n1"
    });
    wait_until("the token says nothing any more", SOON, || {
        conn.token().is_none()
    });
}

#[test]
fn a_request_with_a_token_hands_on_what_it_wrote_itself() {
    let db = db_with(1, patient);
    let other = elsewhere(&db);
    db.cluster.wait_replicated();
    db.cluster.pause_replication(1);
    let request = Context::resume("");
    request.run(|| write(&mut db.pool.get().unwrap(), "first"));
    let token = request.token().expect("the unit has ended");
    let next = Context::resume(&token);
    next.run(|| write(&mut other.get().unwrap(), "second"));
    let token = next.token().expect("both are missing on the replica");
    let (bodies, who, _) = read(&db.pool, &token);
    assert_eq!((bodies.len(), who.as_str()), (2, "n0"));
    db.cluster.resume_replication(1);
    db.cluster.wait_replicated();
    let (bodies, who, _) = read(&db.pool, &token);
    assert_eq!(
        (bodies.len(), who.as_str()),
        (2, "n1"),
        "it knew both positions"
    );
}

#[test]
fn a_position_that_no_server_has_reached_holds_nobody_up() {
    let db = db_with(1, |config| {
        config
            .max_lag(Duration::from_secs(2))
            .sticky_for(Duration::from_secs(8))
    });
    let mut conn = db.pool.get().unwrap();
    conn.cluster().check();
    let status = conn.cluster().status();
    let position = status.nodes[0]
        .position
        .as_ref()
        .expect("the primary has one")
        .to_string();
    let ahead = beyond(&position);
    let token = invented(&ahead);
    let context = Context::resume(&token);
    context.run(|| {
        assert_eq!(conn.distributed(who), "n0", "no replica has it");
        wait_until("neither has the primary, and time ends it", SOON, || {
            conn.distributed(who) == "n1"
        });
    });
}

/// A position that will not be reached soon.
fn beyond(position: &str) -> String {
    match position.split_once("postgres:") {
        Some((_, rest)) => {
            let (head, _) = rest.rsplit_once(':').unwrap();
            format!("postgres:{head}:FFFF/0")
        }
        None => match position.split_once("mariadb:") {
            Some(_) => "mariadb:0-1-99999999".to_owned(),
            None => format!("{}:1-99999999", position.rsplit_once(':').unwrap().0),
        },
    }
}

/// A token as somebody else may write it.
fn invented(position: &str) -> String {
    use base64::Engine;
    let tag = "default"
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    let mut body = tag.to_be_bytes().to_vec();
    body.extend(u64::MAX.to_be_bytes());
    body.extend(u16::try_from(position.len()).unwrap().to_be_bytes());
    body.extend(position.as_bytes());
    format!(
        "1.{}",
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(body)
    )
}
