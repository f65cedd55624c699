//! One node on a SQLite file, with hooks that fail, panic and take their time.

mod losses;

use std::sync::Mutex as StdMutex;
use std::sync::atomic::AtomicUsize;
use std::thread;

use diesel::connection::{Connection, InstrumentationEvent};
use diesel::r2d2::{CustomizeConnection, Error as PoolError};
use diesel::result::{Error, QueryResult};
use diesel::sqlite::SqliteConnection;
use tempfile::TempDir;

use super::checkout::Admission;
use super::*;
use crate::cluster::{Cluster, ClusterConfig};

const LONG: Duration = Duration::from_secs(60);
const AT_ONCE: Duration = Duration::from_secs(20);

/// What becomes of a dial, told by its number.
type Dial = fn(usize) -> QueryResult<()>;

/// A cluster with a replica of three connections, and how often it was dialled and pinged.
struct Fixture {
    node: Arc<Node<SqliteConnection>>,
    dials: Arc<AtomicUsize>,
    queries: Arc<AtomicUsize>,
    cluster: Cluster<SqliteConnection>,
    _dir: TempDir,
}

fn fixture(dial: Dial) -> Fixture {
    fixture_with(dial, |config| config)
}

fn fixture_with(dial: Dial, change: impl FnOnce(ClusterConfig) -> ClusterConfig) -> Fixture {
    let dir = TempDir::new().unwrap();
    let path = |name| dir.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("replica"), "").unwrap();
    let config = ClusterConfig::new(path("primary")).replica(path("replica"));
    // nobody probes the nodes, so that every dial is a caller's
    let config = config
        .pool_size(4)
        .connect_timeout(LONG)
        .check_interval(Duration::ZERO);
    let config = config.quarantine(Duration::from_millis(1));
    let cluster = Cluster::<SqliteConnection>::new(change(config)).unwrap();
    let (dials, queries) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let (dialled, asked) = (Arc::clone(&dials), Arc::clone(&queries));
    cluster.hooks().add_setup(Arc::new(move |conn, _| {
        let asked = Arc::clone(&asked);
        conn.set_instrumentation(move |event: InstrumentationEvent<'_>| {
            if matches!(event, InstrumentationEvent::StartQuery { .. }) {
                asked.fetch_add(1, Ordering::SeqCst);
            }
        });
        dial(dialled.fetch_add(1, Ordering::SeqCst))
    }));
    Fixture {
        node: Arc::clone(cluster.members().find(1).unwrap()),
        dials,
        queries,
        cluster,
        _dir: dir,
    }
}

impl Fixture {
    fn lend(&self) -> Result<Lease<SqliteConnection>, Denial> {
        self.lend_within(LONG)
    }

    fn lend_within(&self, time: Duration) -> Result<Lease<SqliteConnection>, Denial> {
        let deadline = Instant::now() + time;
        let permit = self.node.permits().acquire(deadline).expect("one is free");
        self.node.lend(permit, Instant::now(), deadline)
    }

    fn wait_for_quarantine(&self) {
        wait_until("it may be dialled", || self.node.may_dial(Instant::now()));
    }

    fn dials(&self) -> usize {
        self.dials.load(Ordering::SeqCst)
    }

    fn queries(&self) -> usize {
        self.queries.load(Ordering::SeqCst)
    }

    fn fails(&self) -> Denial {
        self.wait_for_quarantine();
        self.lend().err().expect("nothing is lent")
    }
}

fn works(_: usize) -> QueryResult<()> {
    Ok(())
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LONG, "not in time: {what}");
        thread::sleep(Duration::from_millis(3));
    }
}

#[test]
fn nothing_is_dialled_before_it_is_needed() {
    let fixture = fixture(works);
    assert_eq!((fixture.dials(), fixture.node.connections()), (0, (0, 0)));
    drop(fixture.lend().unwrap());
    assert_eq!((fixture.dials(), fixture.node.connections()), (1, (1, 1)));
}

#[test]
fn a_dial_that_was_not_made_because_nobody_waited_is_no_failure() {
    let fixture = fixture(works);
    let asked = Instant::now();
    // r2d2 dials for a caller who is served in another way meanwhile
    let mut pooled = fixture.node.pool.get().unwrap();
    assert!(pooled.link.is_err() && pooled.opened >= asked);
    let admission = fixture.node.admit(&mut pooled, asked);
    assert!(matches!(admission, Admission::Discard));
}

#[test]
fn a_dial_that_fails_or_panics_is_told_at_once_and_loses_no_permit() {
    fn odd_fail(number: usize) -> QueryResult<()> {
        match number {
            0..4 if number % 2 == 1 => Err(Error::NotFound),
            0..4 => panic!("expected"),
            _ => Ok(()),
        }
    }
    let fixture = fixture(odd_fail);
    for number in 0..4 {
        fixture.wait_for_quarantine();
        let start = Instant::now();
        let Some(Denial::NotAnswering(cause)) = fixture.lend().err() else {
            panic!("dial {number} was not taken for an answer");
        };
        let cause = cause.cause;
        match number % 2 {
            1 => assert!(cause.contains("not found"), "{cause}"),
            _ => assert_eq!(cause, "a connection hook panicked: expected"),
        }
        assert!(
            start.elapsed() < AT_ONCE,
            "r2d2 would wait for connect_timeout"
        );
        assert_eq!(fixture.node.in_flight(), 0);
    }
    assert!(!fixture.node.is_gone(), "the server itself answers");
    assert_eq!(
        fixture.lend().err(),
        Some(Denial::NotNow),
        "not dialled meanwhile"
    );
    fixture.wait_for_quarantine();
    assert!(fixture.lend().is_ok(), "the next one works");
}

#[test]
fn a_failure_that_nobody_waited_for_is_news_unless_it_is_old() {
    fn failure_first(number: usize) -> QueryResult<()> {
        match number {
            0 => Err(Error::NotFound),
            _ => Ok(()),
        }
    }
    for (age, denied) in [(Duration::ZERO, Some(Denial::NotNow)), (LONG, None)] {
        let fixture = fixture(failure_first);
        // given back, a failure lies in the pool like one whose caller gave up before
        let dials = &fixture.node.dialer.dials;
        let mut failed = dials.wait(|| fixture.node.pool.get()).unwrap();
        assert!(failed.link.is_err());
        failed.used -= age;
        drop(failed);
        assert_eq!(fixture.node.connections(), (1, 1));
        assert_eq!(fixture.lend().err(), denied, "{age:?}");
        fixture.wait_for_quarantine();
        assert!(fixture.lend().is_ok(), "it is asked again");
        assert_eq!(fixture.node.connections().0, 1, "and takes no place");
    }
}

#[test]
fn a_dial_that_takes_too_long_is_silence() {
    fn slow(_: usize) -> QueryResult<()> {
        thread::sleep(Duration::from_millis(300));
        Ok(())
    }
    let timeout = Duration::from_millis(100);
    let fixture = fixture_with(slow, |config| config.connect_timeout(timeout));
    let silent = Denial::NotAnswering(DialError::death("no answer within 100ms".to_owned()));
    assert_eq!(fixture.fails(), silent);
    assert!(fixture.node.is_gone());
}

#[test]
fn too_little_time_to_tell_is_not_taken_for_silence() {
    fn slow(_: usize) -> QueryResult<()> {
        thread::sleep(Duration::from_millis(200));
        Ok(())
    }
    let fixture = fixture(slow);
    let denied = fixture.lend_within(Duration::from_millis(20)).err();
    assert_eq!(denied, Some(Denial::OutOfTime));
    assert!(!fixture.node.is_gone(), "its circuit stays closed");
}

#[test]
fn a_node_that_answers_slowly_to_many_is_not_taken_for_dead() {
    fn slow(_: usize) -> QueryResult<()> {
        thread::sleep(Duration::from_millis(300));
        Ok(())
    }
    let timeout = Duration::from_secs(1);
    let fixture = fixture_with(slow, |config| config.pool_size(9).connect_timeout(timeout));
    thread::scope(|scope| {
        // the last of six waits for 1.8 s, as one thread dials
        let lend = || {
            let lease = fixture.lend();
            thread::sleep(2 * timeout);
            lease.is_ok()
        };
        let threads: Vec<_> = (0..6).map(|_| scope.spawn(lend)).collect();
        assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
    });
    assert!(!fixture.node.is_gone());
}

#[test]
fn a_waiter_is_served_as_soon_as_a_broken_connection_is_given_back() {
    let fixture = fixture_with(works, |config| config.pool_size(1));
    let mut broken = fixture.lend().unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let lease = fixture.lend();
            (lease.is_ok(), Instant::now())
        });
        wait_until("the waiter waits", || fixture.node.in_flight() == 1);
        broken.lose();
        let given_back = Instant::now();
        drop(broken);
        let (served, at) = waiter.join().unwrap();
        assert!(served && at - given_back < AT_ONCE);
    });
    assert_eq!(fixture.dials(), 2);
}

#[test]
fn a_connection_is_pinged_only_after_idling() {
    for (validate_after, pings) in [(Duration::from_secs(60), 0), (Duration::ZERO, 50)] {
        let fixture = fixture_with(works, |config| config.validate_after(validate_after));
        drop(fixture.lend().unwrap());
        let before = fixture.queries();
        for _ in 0..50 {
            drop(fixture.lend().unwrap());
        }
        assert_eq!(fixture.queries() - before, pings, "with {validate_after:?}");
        assert_eq!(fixture.dials(), 1);
    }
}

#[test]
fn after_a_loss_every_older_connection_is_pinged_once() {
    let minute = Duration::from_secs(60);
    let fixture = fixture_with(works, |config| config.validate_after(minute).pool_size(9));
    let lend = |count: usize| -> Vec<_> { (0..count).map(|_| fixture.lend().unwrap()).collect() };
    let mut leases = lend(3);
    let mut broken = leases.pop().unwrap();
    broken.lose();
    drop((broken, leases)); // the loss comes first, and giving back proves nothing
    let before = fixture.queries();
    drop(lend(2));
    assert_eq!(
        fixture.queries() - before,
        2,
        "each of the two that are left"
    );
    drop(lend(2));
    assert_eq!(fixture.queries() - before, 2, "and then they are trusted");
    let new = lend(3);
    assert_eq!(fixture.dials(), 4, "the broken one was closed");
    let before = fixture.queries();
    drop(new);
    drop(lend(3));
    assert_eq!(fixture.queries(), before, "a newer one was never in doubt");
}

#[test]
fn what_must_not_reach_the_next_borrower_is_closed() {
    type Spoil = fn(&mut Lease<SqliteConnection>);
    let spoil: [(&str, Spoil); 4] = [
        ("session state", |lease| lease.tenancy = Tenancy::Session),
        ("a loss", |lease| lease.lose()),
        ("an open transaction", |lease| {
            type Manager = <SqliteConnection as Connection>::TransactionManager;
            <Manager as diesel::connection::TransactionManager<SqliteConnection>>::begin_transaction(
                lease.connection(),
            )
            .unwrap();
        }),
        ("a test transaction", |lease| {
            lease.connection().begin_test_transaction().unwrap();
        }),
    ];
    for (what, spoil) in spoil {
        let fixture = fixture(works);
        let mut lease = fixture.lend().unwrap();
        spoil(&mut lease);
        drop(lease);
        assert_eq!(fixture.node.connections(), (0, 0), "{what}");
        drop(fixture.lend().unwrap());
        assert_eq!(fixture.node.connections(), (1, 1), "a clean one is kept");
    }
}

#[test]
fn a_connection_given_back_by_a_panic_is_closed() {
    let fixture = fixture(works);
    let lease = fixture.lend().unwrap();
    let panicked = thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let _lease = lease;
            panic!("expected");
        });
        thread.join().is_err()
    });
    assert!(panicked);
    assert_eq!(fixture.node.connections(), (0, 0));
    assert_eq!(fixture.node.in_flight(), 0);
}

#[test]
fn lifetimes_differ_and_an_old_connection_is_replaced() {
    let fixture = fixture_with(works, |config| config.pool_size(30));
    let mut leases: Vec<_> = (0..20).map(|_| fixture.lend().unwrap()).collect();
    let lifetimes = leases.iter_mut().map(|lease| {
        let inner = lease.inner();
        inner.expires - inner.opened
    });
    let lifetimes: Vec<_> = lifetimes.collect();
    let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
    for lifetime in &lifetimes {
        assert!(
            (minutes(12)..=minutes(18)).contains(lifetime),
            "{lifetime:?}"
        );
    }
    assert!(lifetimes.iter().max() > lifetimes.iter().min(), "all alike");
    drop(leases.drain(1..));
    let dials = fixture.dials();
    let mut last = leases.pop().unwrap();
    last.inner().expires = Instant::now();
    drop(last);
    drop(fixture.lend().unwrap());
    assert_eq!(fixture.node.connections().0, 19, "the old one is gone");
    assert_eq!(fixture.dials(), dials, "another one was there");
}
