//! What routing costs in round trips, counted on the way to each server: the same work through the
//! router and on a bare connection.

use std::time::{Duration, Instant};

use diesel::prelude::*;
use diesel_routed::{ClusterConfig, Context, NodeConfig};

use super::backend::*;
use super::pools::*;
use crate::support::{Cluster, Forwarder};

/// Everything that is asked passes here. The pool goes first.
struct Site {
    pool: Pool,
    bare: Plain,
    ways: Vec<Forwarder>,
    cluster: Cluster,
}

/// After the first look nobody probes, and no connection is ever pinged: all that is counted is the
/// application's.
fn undisturbed(config: ClusterConfig) -> ClusterConfig {
    patient(config)
        .check_interval(Duration::ZERO)
        .check_ttl(Duration::from_secs(3600))
        .validate_after(Duration::from_secs(3600))
}

/// A pool whose connections are open, and have prepared what is going to be counted.
fn site(replicas: usize) -> Site {
    let cluster = cluster(replicas);
    let nodes = 0..cluster.len();
    let ways: Vec<_> = nodes
        .map(|node| Forwarder::new(&[cluster.port(node)]))
        .collect();
    let url = |node: usize| cluster.url_through(node, &ways[node]);
    let node = |place| NodeConfig::new(url(place)).name(&format!("n{place}"));
    let config = (1..cluster.len()).fold(ClusterConfig::new(node(0)), |config, place| {
        config.replica(node(place))
    });
    let pool = pool_of(1, undisturbed(config));
    warm(&pool);
    let mut bare = Plain::establish(&url(0)).expect("the primary answers");
    one_write(&mut bare);
    one_read(&mut bare);
    let site = Site {
        pool,
        bare,
        ways,
        cluster,
    };
    site.with_token(|conn| {
        one_read(conn);
        conn.distributed(one_read);
        one_write(conn);
    });
    site.catch_up();
    site
}

fn one_read<C>(conn: &mut C)
where
    C: diesel::connection::LoadConnection<Backend = <Plain as Connection>::Backend>,
{
    let names = node_name::table.select(node_name::name);
    names.first::<String>(conn).expect("every node has a name");
}

fn one_write<C>(conn: &mut C)
where
    C: diesel::connection::LoadConnection<Backend = <Plain as Connection>::Backend>,
{
    let insert = diesel::insert_into(note::table).values(note::body.eq("note"));
    insert.execute(conn).expect("the primary takes a note");
}

impl Site {
    /// The round trips to each node that `f` takes.
    fn count(&self, f: impl FnOnce(&Pool)) -> Vec<usize> {
        let trips = || self.ways.iter().map(Forwarder::round_trips);
        let before: Vec<_> = trips().collect();
        f(&self.pool);
        trips().zip(before).map(|(now, then)| now - then).collect()
    }

    /// Those to the primary that `f` takes on a bare connection.
    fn bare(&mut self, f: impl FnOnce(&mut Plain)) -> usize {
        let before = self.ways[0].round_trips();
        f(&mut self.bare);
        self.ways[0].round_trips() - before
    }

    /// One unit of a request that will be written down.
    fn with_token(&self, f: impl FnOnce(&mut Conn)) {
        let request = Context::resume("");
        request.run(|| f(&mut self.pool.get().expect("a handle is free")));
    }

    /// Has the replicas have everything, and the router know it.
    fn catch_up(&self) {
        self.cluster.wait_replicated();
        self.pool.get().unwrap().cluster().check();
    }
}

#[test]
fn lending_a_handle_costs_none() {
    let site = site(1);
    let lent = site.count(|pool| (0..10).for_each(|_| drop(pool.get().unwrap())));
    assert_eq!(lent, [0, 0]);
}

#[test]
fn a_read_costs_none_beyond_its_own_where_the_replica_is_known_to_be_fresh() {
    let mut site = site(1);
    let own = site.bare(one_read);
    let block = site.count(|pool| pool.get().unwrap().distributed(one_read));
    assert_eq!(block, [0, own], "of who has written nothing");
    let writer = Context::resume("");
    writer.run(|| one_write(&mut *site.pool.get().unwrap()));
    let later =
        |site: &Site| site.count(|pool| writer.run(|| pool.get().unwrap().distributed(one_read)));
    site.catch_up();
    assert_eq!(later(&site), [0, own], "of who has written what it has");
    let token = {
        let mut conn = site.pool.get().unwrap();
        one_write(&mut *conn);
        conn.token().expect("the replica is not known to have it")
    };
    site.catch_up();
    let read =
        |pool: &Pool| Context::resume(&token).run(|| pool.get().unwrap().distributed(one_read));
    assert_eq!(site.count(read), [0, own], "of who has a token");
}

#[test]
fn a_unit_that_wrote_costs_none_without_a_token_and_one_question_with_one() {
    let mut site = site(1);
    let own = site.bare(one_write);
    let bare = site.count(|pool| one_write(&mut *pool.get().unwrap()));
    assert_eq!(bare, [own, 0], "without a context");
    let unit = |pool: &Pool| Context::new().run(|| one_write(&mut *pool.get().unwrap()));
    assert_eq!(site.count(unit), [own, 0], "in a context");
    let unit = site.count(|_| site.with_token(one_write));
    assert_eq!(unit, [own + 1, 0], "one that is written down");
    let unit = site.count(|_| {
        site.with_token(|conn| {
            (0..5).for_each(|_| one_write(conn));
            (0..3).for_each(|_| drop(conn.token().expect("it has written")));
        });
    });
    assert_eq!(
        unit,
        [5 * own + 1, 0],
        "however much it writes, and however often it asks"
    );
    let unit = site.count(|_| site.with_token(one_read));
    assert_eq!(unit[0], site.bare(one_read), "nor does one that only reads");
}

#[test]
fn a_transaction_costs_what_it_costs_without_the_router() {
    let mut site = site(1);
    let own = site.bare(|conn| {
        let done = conn.transaction(|conn| {
            one_write(conn);
            QueryResult::Ok(())
        });
        done.expect("it commits");
    });
    let routed = site.count(|pool| {
        let mut conn = pool.get().unwrap();
        let done = conn.transaction(|conn| {
            one_write(conn);
            QueryResult::Ok(())
        });
        done.expect("it commits");
    });
    assert_eq!(routed, [own, 0]);
}

#[test]
fn without_replicas_nothing_costs_more() {
    let mut site = site(0);
    let own = site.bare(|conn| {
        one_write(conn);
        one_read(conn);
    });
    let routed = site.count(|_| {
        site.with_token(|conn| {
            one_write(conn);
            conn.distributed(one_read);
            conn.token();
        });
    });
    assert_eq!(routed, [own]);
}

/// 42: what is not known is asked once, and its answer serves everybody.
#[test]
fn n42_a_replica_is_asked_once_for_a_position_however_many_blocks_need_it() {
    let mut site = site(1);
    let own = site.bare(one_read);
    let token = {
        let mut conn = site.pool.get().unwrap();
        one_write(&mut *conn);
        conn.token().expect("the replica is not known to have it")
    };
    site.cluster.wait_replicated();
    let read =
        |pool: &Pool| Context::resume(&token).run(|| pool.get().unwrap().distributed(one_read));
    let first = site.count(read);
    assert!(first[0] == 0 && first[1] > own, "it is asked: {first:?}");
    let others = site.count(|pool| (0..50).for_each(|_| read(pool)));
    assert_eq!(others, [0, 50 * own], "and then it is known");
}

/// 42: and a "not yet" is not asked again at once.
#[test]
fn n42_a_replica_that_is_behind_is_not_asked_by_every_block() {
    let site = site(1);
    site.cluster.pause_replication(1);
    let token = {
        let mut conn = site.pool.get().unwrap();
        one_write(&mut *conn);
        conn.token().expect("the replica lacks it")
    };
    let start = Instant::now();
    let trips = site.count(|pool| {
        for _ in 0..200 {
            Context::resume(&token).run(|| {
                let mut conn = pool.get().unwrap();
                assert_eq!(block_reads_from(&mut conn), "n0");
            });
        }
    });
    let (questions, elapsed) = (trips[1], start.elapsed());
    println!("{questions} round trips of questions in {elapsed:?}");
    // one takes four at most, and there is one in 20 ms
    let most = 4 * (elapsed.as_millis() / 20 + 1);
    assert!(questions as u128 <= most, "{questions} in {elapsed:?}");
}
