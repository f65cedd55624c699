//! What a SQLite file says of itself.

use std::time::Duration;

use diesel::prelude::*;
use diesel_routed::{Access, Following, Identity, ReplicatedConnection};

use crate::kit::sqlite::{Plain, cluster};

#[test]
fn a_file_is_itself_under_all_of_its_names() {
    let cluster = cluster(1);
    let url = cluster.url(0);
    let file = url.trim_start_matches("file:").trim_end_matches("?mode=rw");
    let link = cluster.dir().join("link");
    std::os::unix::fs::symlink(file, &link).expect("a new name");
    let names = [url.as_str(), file, link.to_str().expect("plain letters")];
    let report = |url: &str| {
        let mut conn = Plain::open_probe(url, diesel_routed::Role::Primary, Duration::from_secs(1))
            .expect("the file is there");
        conn.probe().expect("it answers")
    };
    let first = report(names[0]);
    assert_eq!(
        (first.access, first.following),
        (Access::ReadWrite, Following::Unknown)
    );
    assert_eq!(first.position, None);
    for name in names {
        assert_eq!(report(name).identity, first.identity, "{name}");
    }
    assert_ne!(
        report(&cluster.url(1)).identity,
        first.identity,
        "the replica is another file"
    );
}

#[test]
fn a_database_in_memory_has_no_name() {
    let mut conn = Plain::establish(":memory:").expect("memory");
    assert_eq!(conn.identify(), Ok(Identity::new("", "", "")));
}
