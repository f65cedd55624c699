//! Many threads on one pool, whose nodes lend fewer connections than there are threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use diesel::connection::Connection;
use diesel::prelude::*;
use diesel::result::Error;
use diesel_routed::Context;

use super::backend::*;
use super::pools::*;

diesel_routed::define_route!(mod route for Plain);

const THREADS: usize = 8;
const OPERATIONS: usize = 1_000;
const PRIMARY: u32 = 3;
const REPLICA: u32 = 2;

/// Tells each write in a context from the others.
static NUMBER: AtomicUsize = AtomicUsize::new(0);

/// One thing a request may do, and how many notes it leaves.
type Operation = (&'static str, i64, fn(&mut Conn));

const MIX: &[Operation] = &[
    ("a block reads from a replica", 0, |conn| {
        assert_ne!(conn.distributed(who), "n0");
    }),
    ("a plain write", 1, |conn| write(conn, "plain")),
    ("a plain read", 0, |conn| assert_eq!(who(conn), "n0")),
    ("a transaction", 2, |conn| {
        in_transaction(conn, |conn| {
            assert_eq!(who(conn), "n0");
            Ok(())
        })
        .unwrap();
    }),
    ("a transaction that is rolled back", 0, |conn| {
        let result = in_transaction(conn, |_| Err(Error::RollbackTransaction));
        assert_eq!(result, Err(Error::RollbackTransaction));
    }),
    ("a panic in a block", 0, |conn| {
        panics(|| {
            conn.distributed(|conn| -> () {
                assert_ne!(who(conn), "n0");
                panic_now()
            })
        });
        assert_eq!(who(conn), "n0", "outside the block again");
    }),
    ("a panic in a transaction", 0, |conn| {
        panics(|| in_transaction(conn, |_| panic_now()));
    }),
    ("a write in a block", 1, |conn| {
        conn.distributed(|conn| {
            assert_ne!(who(conn), "n0");
            write(conn, "in a block");
            assert_eq!(who(conn), "n0", "the block has written");
        });
        assert_eq!(who(conn), "n0");
    }),
    ("nested blocks", 0, |conn| {
        conn.distributed(|conn| {
            let replica = who(conn);
            assert_eq!(conn.distributed(who), replica, "one replica for both");
            assert_eq!(conn.primary(who), "n0");
            assert_eq!(who(conn), "n0", "nothing older than was seen");
        });
    }),
    ("an ambient block", 0, |conn| {
        assert_eq!(who(conn), "n0");
        let name = route::distributed(|conn| Ok::<_, Error>(who(conn))).unwrap();
        assert_ne!(name, "n0", "a handle of its own has written nothing");
    }),
    ("an ambient block in a context that wrote", 1, |conn| {
        Context::new().run(|| {
            let own = format!("in a context, {}", NUMBER.fetch_add(1, Ordering::Relaxed));
            write(conn, &own);
            let count = note::table.filter(note::body.eq(&own)).count();
            let seen = conn.distributed(|conn| count.get_result(conn));
            assert_eq!(seen, Ok(1_i64), "wherever it reads");
        });
    }),
];

#[test]
fn no_thread_disturbs_another() {
    let cluster = cluster(2);
    let pool = pool_of(THREADS as u32, sized(&cluster, PRIMARY, REPLICA));
    route::install(&pool);
    let written: i64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn({
                    let pool = &pool;
                    move || request_after_request(pool, thread)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    let db = Db { pool, cluster };
    db.cluster.wait_replicated();
    for node in 0..3 {
        assert_eq!(notes_on(&db, node), written, "each write once, on n{node}");
    }
    assert_eq!(in_flight(&db.pool), [0, 0, 0], "every connection is back");
    let every = answers(&db.pool, 2 * REPLICA as usize);
    let each = REPLICA as usize;
    assert_eq!(every, [("n1".into(), each), ("n2".into(), each)].into());
    let cluster = db.pool.get().unwrap().cluster().clone();
    let mut handles: Vec<Conn> = (0..PRIMARY).map(|_| cluster.connection()).collect();
    handles
        .iter_mut()
        .for_each(|conn| assert_eq!(who(conn), "n0"));
    assert_eq!(
        in_flight(&db.pool),
        [PRIMARY, 0, 0],
        "the primary lends all it has"
    );
}

/// The requests of one thread, in an order of its own; returns how many notes it wrote.
fn request_after_request(pool: &Pool, thread: usize) -> i64 {
    let mut written = 0;
    let mut dice = thread;
    for _ in 0..OPERATIONS {
        dice = dice
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let (_, notes, operation) = MIX[(dice >> 33) % MIX.len()];
        operation(&mut pool.get().unwrap());
        written += notes;
    }
    written
}

fn in_transaction(
    conn: &mut Conn,
    end: impl FnOnce(&mut Conn) -> QueryResult<()>,
) -> QueryResult<()> {
    conn.transaction(|conn| {
        write(conn, "in a transaction");
        write(conn, "in a transaction");
        end(conn)
    })
}
