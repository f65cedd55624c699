//! A replicated database on this machine, for trying things out.
//!
//! `cargo run --example dev_cluster -- postgres 2` starts a primary with two replicas, prints the
//! environment variables that point at them, and runs until Ctrl-C, which removes everything.
//! `mariadb` or `mysql` instead of `postgres` does what it says.

#[path = "../tests/support/mod.rs"]
mod support;

use std::process::ExitCode;
use std::sync::mpsc;

use support::Cluster;

const USAGE: &str = "usage: cargo run --example dev_cluster -- postgres|mariadb|mysql [replicas]";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let start = match arguments.next().as_deref() {
        Some("postgres") => Cluster::postgres,
        Some("mariadb") => Cluster::mariadb,
        Some("mysql") => Cluster::mysql,
        _ => return usage(),
    };
    let Ok(replicas) = arguments.next().as_deref().unwrap_or("1").parse() else {
        return usage();
    };

    // First, so that a signal during the start is heard too.
    let (stop, stopped) = mpsc::channel();
    ctrlc::set_handler(move || stop.send(()).expect("main listens"))
        .expect("no other handler is set");
    let cluster = start(replicas);
    println!("export DATABASE_URL={}", cluster.url(0));
    println!(
        "export DATABASE_REPLICA_URLS=\"{}\"",
        cluster.replica_urls().join(" ")
    );
    eprintln!("Running 1 primary and {replicas} replica(s). Ctrl-C stops and removes them.");
    stopped.recv().expect("the handler keeps the sender");
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::FAILURE
}
