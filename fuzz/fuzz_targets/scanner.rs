//! `cargo +nightly fuzz run scanner`: no text makes the scanner panic, and what it says agrees.
#![no_main]

use diesel_routed::statement::{Dialect, Form, Keeps, classify};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|sql: &str| {
    for dialect in [Dialect::Postgres, Dialect::Mysql, Dialect::Sqlite] {
        let kind = classify(dialect, sql);
        if !kind.needs_primary() {
            assert_eq!(kind.form(), Form::Read, "{dialect:?}: {sql}");
            assert_eq!(kind.session().keeps, Keeps::Nothing, "{dialect:?}: {sql}");
        }
        let behind_a_write = format!("DELETE FROM t {sql}");
        assert!(classify(dialect, &behind_a_write).needs_primary(), "{dialect:?}: {sql}");
    }
});
