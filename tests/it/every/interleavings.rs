//! What can come between a write and the read that has to see it. The numbers are those of
//! docs/consistency.md, which also names the tests that stand elsewhere.

#[path = "interleavings/failover.rs"]
mod failover;
#[path = "interleavings/marks.rs"]
mod marks;
#[path = "interleavings/tokens.rs"]
mod tokens;

use std::time::{Duration, Instant};

use diesel_routed::{ClusterConfig, Context};

use super::backend::*;
use super::pools::*;
use crate::support::wait_until;

/// Another pool on the same servers, as another process has it: nothing is shared but the token.
fn elsewhere(db: &Db, change: impl FnOnce(ClusterConfig) -> ClusterConfig) -> Pool {
    let pool = pool_of(2, change(crate::kit::config(&db.cluster)));
    pool.get().unwrap().cluster().check();
    pool
}

/// What a request with this token sees in a block, and where.
fn read_with(pool: &Pool, token: &str) -> (Vec<String>, String) {
    Context::resume(token).run(|| {
        let read = |conn: &mut Conn| (bodies(conn), who(conn));
        pool.get().unwrap().distributed(read)
    })
}

/// By somebody else: nothing sticks here.
fn commit(db: &Db, body: &str) {
    let insert = format!("INSERT INTO note (body) VALUES ('{body}')");
    db.cluster.sql(0, &insert);
}

fn let_pass(time: Duration) {
    let since = Instant::now();
    wait_until("time passes", time * 10, || since.elapsed() > time);
}
