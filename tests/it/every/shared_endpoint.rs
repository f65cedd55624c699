//! Several servers behind one URL: whom a connection leads to is known to the connection alone.

use diesel::prelude::*;
use diesel_routed::{ClusterConfig, Context, NodeConfig};

use super::backend::*;
use super::health::*;
use super::pools::*;
use crate::support::{Cluster, Forwarder, wait_until};

/// The primary, and all its replicas behind one forwarder.
fn balanced(cluster: &Cluster, forwarder: &Forwarder) -> Pool {
    let primary = NodeConfig::new(cluster.url(0)).name("n0").pool_size(4);
    let replicas = NodeConfig::new(cluster.url_through(1, forwarder)).name("replicas");
    let config = ClusterConfig::new(primary).replica(replicas.pool_size(4));
    pool_of(4, watched(config))
}

/// Writes and reads in one request: who answered, which must have been one that has the note.
fn write_and_read(pool: &Pool, body: &str) -> String {
    Context::new().run(|| {
        let mut conn = pool.get().expect("a handle is free");
        write(&mut conn, body);
        drop(conn);
        pool.get().expect("a handle is free").distributed(|conn| {
            let own = note::table.filter(note::body.eq(body)).count();
            let seen = own.get_result::<i64>(conn).expect("notes can be read");
            let name = who(conn);
            assert_eq!(seen, 1, "{name} was asked, and lacks {body}");
            name
        })
    })
}

#[test]
fn an_own_write_is_seen_whichever_server_a_connection_leads_to() {
    let cluster = cluster(2);
    let forwarder = Forwarder::new(&[cluster.port(1), cluster.port(2)]);
    let pool = balanced(&cluster, &forwarder);
    wait_until("both are behind it", SOON, || {
        let read = || Context::new().run(|| pool.get().unwrap().distributed(who));
        let names: Vec<String> = (0..8).map(|_| read()).collect();
        // a new connection leads to the next one
        forwarder.cut();
        names.iter().any(|name| name != "n0")
    });
    cluster.pause_replication(2);
    for i in 0..60 {
        write_and_read(&pool, &format!("own {i}"));
        if i % 7 == 0 {
            forwarder.cut();
        }
    }
}

#[test]
fn an_own_write_is_seen_when_the_endpoint_comes_to_lead_to_another_server() {
    let cluster = cluster(2);
    let forwarder = Forwarder::new(&[cluster.port(1)]);
    let pool = balanced(&cluster, &forwarder);
    let known = Known::to(&pool);
    known.wait("replicas", "up");
    cluster.pause_replication(2);
    for (i, place) in [1, 2, 1, 2, 1, 2].into_iter().enumerate() {
        forwarder.switch(&[cluster.port(place)]);
        forwarder.cut();
        for j in 0..5 {
            write_and_read(&pool, &format!("own {i} {j}"));
        }
    }
    forwarder.switch(&[cluster.port(1)]);
    forwarder.cut();
    cluster.resume_replication(2);
    wait_until("it serves again", SOON, || {
        Context::new().run(|| pool.get().unwrap().distributed(who)) == "n1"
    });
}

#[test]
fn a_token_is_handed_on_for_the_servers_of_an_endpoint_that_nobody_asks() {
    let cluster = cluster(2);
    let forwarder = Forwarder::new(&[cluster.port(2)]);
    let (here, there) = (
        balanced(&cluster, &forwarder),
        balanced(&cluster, &forwarder),
    );
    Known::to(&here).wait("replicas", "up");
    // from now on the probes meet the first one
    forwarder.switch(&[cluster.port(1)]);
    forwarder.cut();
    Known::to(&here).wait("replicas", "up");
    Known::to(&there).wait("replicas", "up");
    cluster.pause_replication(2);
    let request = Context::resume("");
    request.run(|| write(&mut here.get().unwrap(), "own"));
    cluster.wait_replicated();
    here.get().unwrap().cluster().check();
    let token = request.token().unwrap_or_default();
    forwarder.switch(&[cluster.port(2)]);
    let next = Context::resume(&token);
    let seen = next.run(|| there.get().unwrap().distributed(bodies));
    assert_eq!(seen, ["own"], "the second one lacks it");
}

#[test]
fn the_primary_under_another_address_is_no_replica() {
    let cluster = cluster(1);
    let forwarder = Forwarder::new(&[cluster.port(0)]);
    let primary = NodeConfig::new(cluster.url(0)).name("n0");
    let alias = NodeConfig::new(cluster.url_through(0, &forwarder)).name("alias");
    let replica = NodeConfig::new(cluster.url(1)).name("n1");
    let config = ClusterConfig::new(primary).replica(alias).replica(replica);
    let pool = pool_of(2, watched(config));
    let known = Known::to(&pool);
    // whichever address it was met at first is the primary's
    let refused = || {
        known
            .states()
            .iter()
            .filter(|state| *state == "refused")
            .count()
    };
    wait_until("one of its addresses is the primary's", SOON, || {
        refused() == 1 && known.primaries().len() == 1
    });
    known.wait("n1", "up");
    assert_ne!(known.primaries(), ["n1"]);
    for _ in 0..50 {
        let name = Context::new().run(|| pool.get().unwrap().distributed(who));
        assert_eq!(name, "n1", "the one replica serves");
    }
    write(&mut pool.get().unwrap(), "noted");
}
