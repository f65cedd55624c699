//! Nothing is lost, whatever breaks or panics.

use super::*;

/// Panics when a connection is closed, and counts how often.
#[derive(Debug)]
struct PanicsOnRelease(Arc<StdMutex<u32>>);

impl CustomizeConnection<SqliteConnection, PoolError> for PanicsOnRelease {
    fn on_release(&self, _: SqliteConnection) {
        *self
            .0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner()) += 1;
        panic!("expected");
    }
}

#[test]
fn a_panic_while_closing_loses_no_permit_and_no_place() {
    let fixture = fixture(works);
    let released = Arc::<StdMutex<u32>>::default();
    let customizer = PanicsOnRelease(Arc::clone(&released));
    fixture.cluster.hooks().set_customizer(Arc::new(customizer));
    for _ in 0..10 {
        let mut lease = fixture.lend().unwrap();
        lease.tenancy = Tenancy::Session;
        drop(lease);
        assert_eq!(
            (fixture.node.in_flight(), fixture.node.connections()),
            (0, (0, 0))
        );
    }
    let released = *released
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    assert_eq!(released, 10, "every one was handed over");
}

#[test]
fn many_threads_and_a_fifth_of_broken_connections_lose_nothing() {
    let fixture = fixture(works);
    let size = fixture.node.settings.pool_size(Role::Replica) as usize;
    thread::scope(|scope| {
        for thread in 0..8 {
            let fixture = &fixture;
            scope.spawn(move || {
                for number in 0..500 {
                    let mut lease = fixture.lend().unwrap();
                    if (thread + number) % 5 == 0 {
                        lease.lose();
                    }
                }
            });
        }
    });
    assert_eq!(fixture.node.in_flight(), 0);
    let all: Vec<_> = (0..size).map(|_| fixture.lend().unwrap()).collect();
    assert_eq!(all.len(), size, "as many as before can be lent");
    assert!(
        fixture.node.permits().try_acquire().is_none(),
        "and no more"
    );
}
