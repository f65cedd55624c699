//! Blocks without a connection in hand, and `distributed` on what is not routed.

use std::time::Duration;

use diesel::prelude::*;
use diesel::r2d2::{ConnectionManager, TestCustomizer};
use diesel::result::Error;
use diesel_routed::{RoutedError, RoutedPool, RoutedPoolExt};

use super::backend::*;
use super::pools::*;

const AT_ONCE: Duration = Duration::from_secs(2);

diesel_routed::define_route!(mod shop for Plain);
diesel_routed::define_route!(mod blog for Plain);

type Answer = QueryResult<String>;

fn answer(conn: &mut Conn) -> Answer {
    Ok(who(conn))
}

#[test]
fn before_a_pool_is_installed_an_ambient_block_says_so() {
    for result in [
        diesel_routed::route::distributed(answer),
        diesel_routed::route::primary(answer),
        shop::distributed(answer),
        blog::primary(answer),
    ] {
        let error = RoutedError::downcast(&result.unwrap_err());
        assert_eq!(error, Some(RoutedError::NotInstalled));
    }
}

#[test]
fn an_installed_pool_serves_blocks_of_its_type() {
    let db = db(1);
    diesel_routed::route::install(&db.pool);
    let replica = diesel_routed::route::distributed(|conn: &mut Conn| Ok::<_, Error>(who(conn)));
    assert_eq!(replica.as_deref(), Ok("n1"));
    let primary = diesel_routed::route::primary(|conn: &mut Conn| Ok::<_, Error>(who(conn)));
    assert_eq!(primary.as_deref(), Ok("n0"));
    let other = db_with(0, |config| config);
    diesel_routed::route::install(&other.pool);
    assert_eq!(
        diesel_routed::route::distributed(answer).as_deref(),
        Ok("n0"),
        "it replaces the first"
    );
}

#[test]
fn each_route_has_a_database_of_its_own() {
    let (one, two) = (db(0), db(0));
    shop::install(&one.pool);
    blog::install(&two.pool);
    shop::primary(|conn| {
        write(conn, "an order");
        QueryResult::Ok(())
    })
    .unwrap();
    let shop = shop::distributed(|conn| note::table.select(note::body).load::<String>(conn));
    assert_eq!(shop.unwrap(), ["an order"]);
    let blog = blog::distributed(|conn| note::table.select(note::body).load::<String>(conn));
    assert_eq!(blog.unwrap(), [""; 0]);
}

#[test]
fn ambient_blocks_nest_although_the_pool_has_one_handle() {
    let db = db(1);
    let pool = pool_of(1, sized(&db.cluster, 4, 4));
    shop::install(&pool);
    let mut conn = pool.get().unwrap();
    let (names, time) = timed(|| {
        conn.distributed(|outer| {
            let outer = who(outer);
            shop::distributed(|middle| {
                let middle = who(middle);
                let inner = shop::distributed(answer)?;
                Answer::Ok([outer, middle, inner].concat())
            })
        })
    });
    assert_eq!(names.as_deref(), Ok("n1n1n1"));
    assert!(time < AT_ONCE, "nobody waited, {time:?}");
}

#[test]
fn a_pool_can_be_installed_while_its_handles_are_in_use() {
    let db = db(1);
    let pool = pool_of(1, sized(&db.cluster, 2, 2));
    let conn = pool.get().unwrap();
    let ((), time) = timed(|| shop::install(&pool));
    assert!(time < AT_ONCE, "waited {time:?}");
    drop(conn);
    assert_eq!(shop::distributed(answer).as_deref(), Ok("n1"));
    let _conn = pool.get().unwrap();
    assert_eq!(
        shop::distributed(answer).as_deref(),
        Ok("n1"),
        "a handle more"
    );
}

#[test]
fn in_a_test_transaction_an_ambient_block_works_or_says_at_once_why_not() {
    let db = db(1);
    let pool = RoutedPool::builder()
        .max_size(1)
        .connection_customizer(Box::new(TestCustomizer))
        .build(manager(sized(&db.cluster, 2, 2)))
        .unwrap();
    shop::install(&pool);
    let mut conn = pool.get().unwrap();
    write(&mut conn, "never committed");
    let (result, time) = timed(|| shop::distributed(answer));
    let error = RoutedError::downcast(&result.unwrap_err());
    assert_eq!(error, Some(RoutedError::TestTransaction));
    assert!(time < AT_ONCE, "at once, not after {time:?}");
    assert_eq!(
        conn.distributed(bodies),
        ["never committed"],
        "as the error advises"
    );
    drop(conn);
    let seen = shop::distributed(|conn| QueryResult::Ok(bodies(conn)));
    assert_eq!(
        seen.unwrap(),
        ["never committed"],
        "the handle that has it is free"
    );
    drop(pool);
    assert_eq!(notes_on(&db, 0), 0, "and it never was");
}

#[test]
fn a_pool_runs_blocks() {
    let db = db(1);
    let names = [db.pool.distributed(answer), db.pool.primary(answer)];
    assert_eq!(names.map(Result::unwrap), ["n1", "n0"]);
    let inferred = db
        .pool
        .distributed(|conn| note::table.count().get_result::<i64>(conn));
    assert_eq!(inferred, Ok(0));
    let custom = db
        .pool
        .distributed(|_| Err::<(), Box<dyn std::error::Error>>("mine".into()));
    assert_eq!(
        custom.unwrap_err().to_string(),
        "mine",
        "any error that takes Diesel's"
    );
}

#[test]
fn a_pool_without_a_free_handle_is_a_pool_timeout() {
    let db = db(0);
    let pool = RoutedPool::builder()
        .max_size(1)
        .connection_timeout(Duration::from_millis(100))
        .build(manager(sized(&db.cluster, 1, 1)))
        .unwrap();
    let _conn = pool.get().unwrap();
    let error = RoutedError::downcast(&pool.distributed(answer).unwrap_err());
    assert!(
        matches!(error, Some(RoutedError::PoolTimeout { .. })),
        "{error:?}"
    );
}

/// As applications import it.
mod glob {
    use diesel_routed::*;

    use super::super::backend::{Plain, Pool, who};
    use super::note;

    pub fn pooled(pool: &Pool) -> String {
        pool.get().unwrap().distributed(who)
    }

    pub fn handle(pool: &Pool) -> String {
        let mut conn: RoutedConnection<Plain> = pool.get().unwrap().cluster().connection();
        conn.distributed(who)
    }

    pub fn plain(conn: &mut Plain) -> i64 {
        use diesel::prelude::*;
        conn.distributed(|conn| note::table.count().get_result(conn))
            .unwrap()
    }

    pub fn plain_pooled(pool: &diesel::r2d2::Pool<diesel::r2d2::ConnectionManager<Plain>>) -> i64 {
        use diesel::prelude::*;
        let mut conn = pool.get().unwrap();
        conn.distributed(|conn| note::table.count().get_result(conn))
            .unwrap()
    }
}

#[test]
fn with_everything_imported_a_handle_routes_and_a_plain_connection_runs_the_closure() {
    let db = db(1);
    write(&mut db.pool.get().unwrap(), "one");
    db.cluster.wait_replicated();
    assert_eq!(glob::pooled(&db.pool), "n1");
    assert_eq!(glob::handle(&db.pool), "n1");
    assert_eq!(glob::plain(&mut plain(&db, 0)), 1);
    let pool = diesel::r2d2::Pool::builder()
        .max_size(1)
        .build(ConnectionManager::<Plain>::new(db.cluster.url(1)))
        .unwrap();
    assert_eq!(glob::plain_pooled(&pool), 1);
}
