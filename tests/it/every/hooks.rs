//! What the user wants done with each real connection.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use diesel::connection::{Instrumentation, InstrumentationEvent, SimpleConnection};
use diesel::prelude::*;
use diesel::r2d2::{CustomizeConnection, Error as PoolError};
use diesel::result::Error;
use diesel_routed::{Fallback, RoutedConnectionManager, RoutedError, RoutedPool, Strategy};

use super::backend::*;
use super::pools::*;
use crate::support::wait_until;

const SOON: Duration = Duration::from_secs(20);

/// An ordinary r2d2 customizer, as applications have it.
#[derive(Debug, Default, Clone)]
struct Customizer {
    released: Arc<AtomicUsize>,
}

impl CustomizeConnection<Plain, PoolError> for Customizer {
    fn on_acquire(&self, conn: &mut Plain) -> Result<(), PoolError> {
        conn.batch_execute(SET).map_err(PoolError::QueryError)
    }

    fn on_release(&self, _: Plain) {
        self.released.fetch_add(1, Ordering::SeqCst);
    }
}

fn managed(db: &Db) -> RoutedConnectionManager<Plain> {
    manager(sized(&db.cluster, 1, 1).strategy(Strategy::RoundRobin))
}

fn one(manager: RoutedConnectionManager<Plain>) -> Pool {
    RoutedPool::builder().max_size(1).build(manager).unwrap()
}

/// Whether the setting is in force on the primary and in two blocks, which two replicas serve.
fn in_force(pool: &Pool) -> [bool; 3] {
    let primary = || is_set(&mut pool.get().unwrap());
    let block = || pool.get().unwrap().distributed(is_set);
    [primary(), block(), block()]
}

#[test]
fn constant_settings_are_in_force_at_every_checkout_on_every_node_and_after_a_reconnect() {
    let db = db(2);
    assert_eq!(in_force(&one(managed(&db))), [false; 3], "not by itself");
    let customized = managed(&db).connection_customizer(Box::new(Customizer::default()));
    let set_up = managed(&db).with_setup(|conn, _| conn.batch_execute(SET));
    for (what, manager) in [("customizer", customized), ("set-up", set_up)] {
        let pool = one(manager);
        for checkout in 1..=3 {
            assert_eq!(in_force(&pool), [true; 3], "{what}, checkout {checkout}");
        }
        if KILLS_CONNECTIONS {
            (0..3).for_each(|node| disconnect(&db.cluster, node));
            wait_until("the primary answers again", SOON, || {
                note::table
                    .count()
                    .get_result::<i64>(&mut pool.get().unwrap())
                    .is_ok()
            });
            assert_eq!(in_force(&pool), [true; 3], "{what}, on new connections");
        }
    }
}

#[test]
fn a_closed_connection_is_handed_to_the_customizer() {
    let db = db(1);
    let customizer = Customizer::default();
    let released = Arc::clone(&customizer.released);
    let pool = one(managed(&db).connection_customizer(Box::new(customizer)));
    who(&mut pool.get().unwrap());
    assert_eq!(released.load(Ordering::SeqCst), 0, "it went back");
    pool.get().unwrap().batch_execute(SET).unwrap();
    assert_eq!(released.load(Ordering::SeqCst), 1, "it holds state");
}

/// The statements that each connection ran after Diesel had made it.
static SPOKEN: Mutex<Vec<Vec<String>>> = Mutex::new(Vec::new());

/// One for each connection.
struct Listening(Option<usize>);

impl Instrumentation for Listening {
    fn on_connection_event(&mut self, event: InstrumentationEvent<'_>) {
        let mut spoken = SPOKEN.lock().unwrap();
        match (event, self.0) {
            (InstrumentationEvent::FinishEstablishConnection { .. }, _) => {
                self.0 = Some(spoken.len());
                spoken.push(vec![]);
            }
            (InstrumentationEvent::StartQuery { query, .. }, Some(connection)) => {
                spoken[connection].push(query.to_string());
            }
            _ => {}
        }
    }
}

#[test]
fn the_customizer_is_the_first_to_speak_on_every_connection() {
    let db = db(2);
    diesel::connection::set_default_instrumentation(|| Some(Box::new(Listening(None)))).unwrap();
    let pool = one(managed(&db).connection_customizer(Box::new(Customizer::default())));
    in_force(&pool);
    let spoken = SPOKEN.lock().unwrap();
    assert!(
        spoken.len() >= 6,
        "one connection to each node, and one for its probes"
    );
    for connection in spoken.iter() {
        let first = connection.first().map(String::as_str).unwrap_or_default();
        assert!(first.starts_with(SET), "{connection:?}");
        assert!(connection.len() > 1, "ours came later");
    }
}

#[test]
fn a_setup_is_told_the_role_once_for_each_connection() {
    let db = db(2);
    let told = Arc::<Mutex<HashMap<String, usize>>>::default();
    let telling = Arc::clone(&told);
    let pool = one(managed(&db).with_setup(move |_, role| {
        *telling.lock().unwrap().entry(role.to_string()).or_default() += 1;
        Ok(())
    }));
    for _ in 0..3 {
        in_force(&pool);
    }
    let expected = HashMap::from([("primary".to_owned(), 1), ("replica".to_owned(), 2)]);
    assert_eq!(*told.lock().unwrap(), expected);
}

#[test]
fn a_hook_that_fails_or_panics_is_an_error_that_names_the_node() {
    let db = db(1);
    // what r2d2 would wait for
    let wait = Duration::from_secs(60);
    let config = || {
        let config = sized(&db.cluster, 1, 1).fallback(Fallback::Error);
        config.connect_timeout(wait).checkout_timeout(wait)
    };
    for (what, hook) in [
        (
            "error",
            (|_, _| Err(Error::NotFound)) as fn(&mut Plain, _) -> _,
        ),
        ("panic", |_, _| panic_now()),
    ] {
        let pool = one(manager(config()).with_setup(hook));
        let ((), time) = timed(|| {
            for _ in 0..3 {
                let mut conn = pool.get().unwrap();
                match routed_error(&mut conn) {
                    RoutedError::NoPrimary { node, .. } => assert_eq!(node, "n0", "{what}"),
                    other => panic!("{what}: {other:?}"),
                }
                match conn.distributed(routed_error) {
                    RoutedError::NoReplica { cause } => {
                        assert!(cause.starts_with("n1: "), "{cause}")
                    }
                    other => panic!("{what}: {other:?}"),
                }
            }
        });
        assert!(time < wait, "{what}: no hang, but {time:?}");
        assert_eq!(in_flight(&pool), [0, 0], "{what}: nothing is lost");
    }
}

fn routed_error(conn: &mut Conn) -> RoutedError {
    let error = note::table.count().get_result::<i64>(conn).unwrap_err();
    RoutedError::downcast(&error).unwrap_or_else(|| panic!("not ours: {error}"))
}

#[test]
fn settings_of_a_session_are_in_force_on_every_node_until_the_handle_goes_back() {
    let db = db(2);
    let pool = one(managed(&db));
    let mut conn = pool.get().unwrap();
    assert!(!is_set(&mut conn), "the primary is open");
    conn.session(|conn| conn.batch_execute(SET)).unwrap();
    assert!(is_set(&mut conn), "on what is open");
    for _ in 0..2 {
        let [replica, set] = conn.distributed(|conn| [who(conn) != "n0", is_set(conn)]);
        assert!(
            replica,
            "the settings are everywhere and keep the handle nowhere"
        );
        assert!(set, "and on what is opened later");
    }
    drop(conn);
    for checkout in 1..=2 {
        assert_eq!(
            in_force(&pool),
            [false; 3],
            "forgotten, checkout {checkout}"
        );
    }
}

#[test]
fn a_session_that_cannot_be_set_fails_the_statement_that_needs_it() {
    let db = db(1);
    let pool = one(managed(&db));
    let mut conn = pool.get().unwrap();
    conn.session(|_| Err(Error::RollbackTransaction)).unwrap();
    for _ in 0..2 {
        let result = conn.distributed(|conn| note::table.count().get_result::<i64>(conn));
        assert_eq!(result, Err(Error::RollbackTransaction));
    }
    drop(conn);
    assert_eq!(pool.get().unwrap().distributed(who), "n1");
    assert_eq!(in_flight(&pool), [0, 0]);
}
