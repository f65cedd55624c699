//! No connection string makes the configuration panic or show its secret.
#![no_main]

use diesel_routed::{ClusterConfig, RoutedConnectionManager};
use libfuzzer_sys::fuzz_target;

const SECRET: &str = "S3CRET-of-this-node";

fuzz_target!(|text: &str| {
    let url = text.replace("$", SECRET);
    let config = ClusterConfig::new(url.as_str()).replica("replica.db");
    assert!(!format!("{config:?}").contains(SECRET));
    match RoutedConnectionManager::<diesel::sqlite::SqliteConnection>::new(config) {
        // a file may be called anything
        Ok(_) => {}
        Err(error) => assert!(!format!("{error} {error:?}").contains(SECRET)),
    }
});
