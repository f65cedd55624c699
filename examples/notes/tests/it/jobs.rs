//! A worker that does jobs of another process.

use rustix::process::Signal;

use crate::process::Process;
use crate::site::{SOON, command, dir};
use crate::support::{Cluster, wait_until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_notes-jobs");

fn add(cluster: &Cluster, text: &str) {
    let status = command(PROGRAM, cluster).args(["add", text]).status();
    assert!(status.expect("it runs").success());
}

fn worker(cluster: &Cluster) -> Process {
    let mut command = command(PROGRAM, cluster);
    command.arg("work");
    Process::start(command, &dir(cluster))
}

fn next(worker: &mut Process) -> String {
    worker.line(|line| Some(line.to_owned()))
}

/// Has a job wait until the replica has all of it, and then changes the note on the primary alone.
/// Tells what the worker reads.
fn job_of_a_replicated_note(cluster: &Cluster, worker: &mut Process) -> String {
    worker.signal(Signal::STOP);
    add(cluster, "replicated");
    cluster.wait_replicated();
    cluster.pause_replication(1);
    cluster.sql(0, "UPDATE notes SET body = 'newer'");
    worker.signal(Signal::CONT);
    let line = next(worker);
    cluster.resume_replication(1);
    cluster.wait_replicated();
    line
}

#[test]
fn a_worker_reads_what_its_producer_wrote_from_whoever_has_it() {
    let cluster = Cluster::postgres(1);
    let mut worker = worker(&cluster);
    wait_until("the replica serves a job that it has all of", SOON, || {
        job_of_a_replicated_note(&cluster, &mut worker) == "\"replicated\", from the replica"
    });

    cluster.pause_replication(1);
    add(&cluster, "own");
    assert_eq!(next(&mut worker), "\"own\", from the primary");
    let rows = "SELECT count(*) FROM notes WHERE body = 'own'";
    assert_eq!(cluster.sql(1, rows), "0", "the replica does not have it");

    cluster.sql(
        0,
        "INSERT INTO jobs SELECT 1, id, NULL FROM notes WHERE body = 'own'",
    );
    let line = next(&mut worker);
    assert_eq!(
        line, "\"own\", from the primary",
        "its producer died before the token"
    );

    cluster.sql(
        0,
        "INSERT INTO jobs SELECT 1, id, '' FROM notes WHERE body = 'own'",
    );
    assert!(
        !worker.ended().success(),
        "without its token it misses the note"
    );
}
