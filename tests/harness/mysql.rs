//! The same on MySQL, which cannot be had everywhere.

use super::*;

#[test]
fn replicates_pauses_and_restarts() {
    replicates(Cluster::mysql);
}

#[test]
fn promotes() {
    super::promotes(Cluster::mysql);
}

#[test]
fn a_frozen_server_answers_nothing_until_thawed() {
    stands_still_while_frozen(Cluster::mysql);
}

#[test]
fn replicas_refuse_writes() {
    refuses_writes(Cluster::mysql, "--read-only option");
}

#[test]
fn a_writable_replica_takes_writes_and_goes_on_replicating() {
    takes_writes_and_goes_on_replicating(Cluster::mysql);
}

#[test]
fn the_application_may_create_tables_and_functions_and_watch_replication() {
    let cluster = Cluster::mysql(1);
    for statement in [
        "CREATE TABLE own (id INTEGER)",
        "CREATE FUNCTION one() RETURNS INTEGER DETERMINISTIC RETURN 1",
        "SELECT * FROM performance_schema.replication_connection_status",
        "SELECT * FROM performance_schema.replication_applier_status_by_worker",
        "SELECT VARIABLE_VALUE + 0 FROM performance_schema.global_status
         WHERE VARIABLE_NAME = 'Threads_running'",
    ] {
        cluster
            .try_app_sql(0, statement)
            .unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

#[test]
fn nodes_have_identities_of_their_own() {
    let cluster = Cluster::mysql(1);
    let identify = |node| cluster.sql(node, "SELECT @@server_uuid");
    assert_ne!(identify(0), identify(1), "the template holds none");
}
