//! A logger that keeps what it is told in a database of its own.
#![cfg(feature = "sqlite")]

use std::cell::Cell;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use diesel::prelude::*;
use diesel::sqlite::SqliteConnection;
use diesel_routed::RoutedConnection;

type Db = RoutedConnection<SqliteConnection>;

struct IntoDatabase;

thread_local! {
    static LOGGING: Cell<bool> = const { Cell::new(false) };
}

impl log::Log for IntoDatabase {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, _: &log::Record<'_>) {
        if !LOGGING.replace(true) {
            let _ = Db::establish("/nowhere/log.db");
            LOGGING.set(false);
        }
    }

    fn flush(&self) {}
}

#[test]
fn a_logger_may_establish_a_connection_while_one_is_established() {
    log::set_logger(&IntoDatabase).unwrap();
    log::set_max_level(log::LevelFilter::Info);
    let (done, is_done) = channel();
    thread::spawn(move || {
        let _ = Db::establish("/nowhere/app.db");
        done.send(()).unwrap();
    });
    let waited = is_done.recv_timeout(Duration::from_secs(20));
    assert_eq!(waited, Ok(()), "the two do not wait for each other");
}
