//! Clusters some of whose nodes are not there when it is started, and come later.

use diesel_routed::{ConnectError, Context, RoutedConnectionManager};

use super::backend::*;
use super::health::*;
use super::pools::*;
use crate::support::wait_until;

#[test]
fn nodes_that_are_down_at_the_start_are_used_when_they_come() {
    for down in [&[0usize] as &[usize], &[1], &[2], &[0, 1], &[0, 2], &[1, 2]] {
        let cluster = cluster(2);
        down.iter().for_each(|node| cluster.kill(*node));
        let config = watched(sized(&cluster, 2, 2)).checkout_timeout(SOON);
        RoutedConnectionManager::<Plain>::connect(config.clone()).expect("one is enough");
        let pool = pool_of(2, config);
        let read = || Context::new().run(|| pool.get().unwrap().distributed(who));
        if down.len() == 1 || down.contains(&0) {
            assert_ne!(read(), format!("n{}", down[0]), "with {down:?} down");
        }
        down.iter().for_each(|node| cluster.restart(*node));
        for node in ["n1", "n2"] {
            wait_until(&format!("{node} serves, {down:?} were down"), SOON, || {
                read() == node
            });
        }
        write(&mut pool.get().unwrap(), "noted");
        Known::to(&pool).wait_for_all();
    }
}

#[test]
fn a_pool_that_was_made_while_all_were_down_works_when_they_come() {
    let cluster = cluster(1);
    (0..2).for_each(|node| cluster.kill(node));
    let config = watched(sized(&cluster, 2, 2));
    let config = config.checkout_timeout(std::time::Duration::from_millis(500));
    match RoutedConnectionManager::<Plain>::connect(config.clone()) {
        Err(ConnectError::Unreachable(causes)) => assert_eq!(causes.len(), 2),
        other => panic!("{other:?}"),
    }
    let pool = pool_of(2, config);
    let known = Known::to(&pool);
    let error = routed(try_write(&mut pool.get().unwrap(), "in vain")).to_string();
    assert!(
        error.contains("n0") && !error.contains("app:app"),
        "{error}"
    );
    (0..2).for_each(|node| cluster.restart(node));
    known.wait("n0", "up");
    known.wait("n1", "up");
    write(&mut pool.get().unwrap(), "noted");
    assert_eq!(
        Context::new().run(|| pool.get().unwrap().distributed(who)),
        "n1"
    );
}
