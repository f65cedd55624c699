//! What tests and deploys of an application rely on: test transactions and migrations.

use diesel::prelude::*;
use diesel::r2d2::TestCustomizer;
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};
use diesel_routed::{Mode, RoutedConnectionManager, RoutedError, route};

use super::backend::*;

const MIGRATIONS: EmbeddedMigrations = embed_migrations!("tests/migrations");

diesel::table! {
    post (id) {
        id -> Integer,
        body -> Text,
        title -> Nullable<Text>,
    }
}

fn migrate(mode: Mode) {
    let db = paused_db_with(1, |config| config.default_mode(mode));
    let mut conn = db.pool.get().unwrap();
    let ran = conn.run_pending_migrations(MIGRATIONS).unwrap();
    assert_eq!(ran.len(), 2, "{mode:?}: both run");
    let posts = || post::table.select(post::body);
    assert_eq!(
        posts().load::<String>(&mut conn).unwrap(),
        ["migrated"],
        "and are seen"
    );
    drop(conn);
    // another request, while the replica knows of nothing
    let mut conn = db.pool.get().unwrap();
    assert!(
        !conn.has_pending_migration(MIGRATIONS).unwrap(),
        "{mode:?}: the primary is asked"
    );
    assert_eq!(conn.applied_migrations().unwrap().len(), 2);
    drop(conn);
    db.cluster.resume_replication(1);
    db.cluster.wait_replicated();
    let mut conn = db.pool.get().unwrap();
    assert_eq!(
        conn.distributed(|conn| posts().load::<String>(conn))
            .unwrap(),
        ["migrated"]
    );
    assert_eq!(
        &*conn.last_route().unwrap().node,
        "n1",
        "the replica has it too"
    );
    let reverted =
        conn.distributed(|conn| conn.revert_all_migrations(MIGRATIONS).map(|all| all.len()));
    assert_eq!(reverted.unwrap(), 2, "{mode:?}: also in a block");
}

#[test]
fn migrations_run_on_the_primary() {
    migrate(Mode::Primary);
}

#[test]
fn migrations_run_on_the_primary_also_where_reads_are_distributed() {
    migrate(Mode::Distributed);
}

/// One handle, in a transaction that is never committed.
fn test_pool(db: &Db, mode: Mode) -> Pool {
    let config = crate::kit::config(&db.cluster).default_mode(mode);
    let manager = RoutedConnectionManager::new(config).unwrap();
    let builder = Pool::builder()
        .max_size(1)
        .connection_customizer(Box::new(TestCustomizer));
    builder.build(manager).unwrap()
}

fn checkouts(mode: Mode) {
    let db = db(1);
    let pool = test_pool(&db, mode);
    for (checkout, body) in ["a", "b", "c"].into_iter().enumerate() {
        let mut conn = pool.get().unwrap();
        write(&mut conn, body);
        let expected = &["a", "b", "c"][..=checkout];
        assert_eq!(
            bodies(&mut conn),
            expected,
            "{mode:?}: what was written is there"
        );
        assert_eq!(
            conn.distributed(bodies),
            expected,
            "{mode:?}: also in blocks"
        );
        assert_eq!(
            conn.distributed(who),
            "n0",
            "{mode:?}: all is on the primary"
        );
        let read = conn.read_only_transaction(|conn| QueryResult::Ok(bodies(conn)));
        assert_eq!(
            read.unwrap(),
            expected,
            "{mode:?}: and in read-only transactions"
        );
    }
    let mut conn = pool.get().unwrap();
    let rolled_back: QueryResult<()> = conn.transaction(|conn| {
        write(conn, "d");
        Err(diesel::result::Error::RollbackTransaction)
    });
    assert!(rolled_back.is_err());
    assert_eq!(
        bodies(&mut conn),
        ["a", "b", "c"],
        "{mode:?}: own transactions are savepoints"
    );
    drop((conn, pool));
    let mut conn = db.pool.get().unwrap();
    assert!(
        bodies(&mut conn).is_empty(),
        "{mode:?}: all is rolled back at the end"
    );
}

#[test]
fn a_test_transaction_spans_checkouts_and_is_seen_by_blocks() {
    checkouts(Mode::Primary);
}

#[test]
fn a_test_transaction_is_seen_where_reads_are_distributed() {
    checkouts(Mode::Distributed);
}

/// As with Diesel's own pool: what the panic left behind is not the next test's.
#[test]
fn a_panic_in_a_test_transaction_ends_it_and_the_next_checkout_begins_another() {
    let db = db(1);
    let pool = test_pool(&db, Mode::Primary);
    let test = std::thread::spawn({
        let pool = pool.clone();
        move || {
            let mut conn = pool.get().unwrap();
            write(&mut conn, "lost");
            panic!("expected");
        }
    });
    assert!(test.join().is_err());
    let mut conn = pool.get().unwrap();
    assert!(bodies(&mut conn).is_empty(), "it was rolled back");
    write(&mut conn, "kept to itself");
    let elsewhere = bodies(&mut db.pool.get().unwrap());
    assert!(elsewhere.is_empty(), "a test transaction is open again");
}

#[test]
fn a_test_transaction_is_shared_by_threads() {
    let db = db(1);
    let pool = test_pool(&db, Mode::Primary);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let pool = &pool;
            scope.spawn(move || {
                let body = format!("thread {thread}");
                for _ in 0..5 {
                    write(&mut pool.get().unwrap(), &body);
                    let seen = pool.get().unwrap().distributed(bodies);
                    assert!(seen.contains(&body), "{body} sees its own rows");
                }
            });
        }
    });
    assert_eq!(bodies(&mut pool.get().unwrap()).len(), 20);
    drop(pool);
    let mut conn = db.pool.get().unwrap();
    assert!(bodies(&mut conn).is_empty());
}

#[test]
fn an_ambient_block_sees_a_test_transaction_or_says_why_it_cannot() {
    let db = db(1);
    let pool = test_pool(&db, Mode::Primary);
    route::install(&pool);
    write(&mut pool.get().unwrap(), "a");
    let read = || route::distributed(|conn: &mut Conn| QueryResult::Ok(bodies(conn)));
    assert_eq!(read().unwrap(), ["a"], "the idle handle is used");
    let conn = pool.get().unwrap();
    let error = read().unwrap_err();
    let told = RoutedError::downcast(&error);
    assert!(
        matches!(told, Some(RoutedError::TestTransaction)),
        "{error}"
    );
    assert!(
        error.to_string().contains("conn.distributed"),
        "it says what to do: {error}"
    );
    drop(conn);
    assert_eq!(read().unwrap(), ["a"]);
}
