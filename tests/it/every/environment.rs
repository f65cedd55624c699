//! A cluster described by the environment, in a process of its own.

use std::path::Path;
use std::process::Command;

use diesel::prelude::*;
use diesel::result::Error;
use diesel_routed::{ClusterMode, RoutedConnectionManager, RoutedError};

use super::backend::*;

/// Marks the process that a test has started.
const CHILD: &str = "DATABASE_TESTED_IN_A_CHILD";

struct Printer;

impl log::Log for Printer {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        if record.target().starts_with("diesel_routed") {
            println!("> log {} {}", record.level(), record.args());
        }
    }

    fn flush(&self) {}
}

/// What the child does: tells how the environment was understood.
fn report() {
    log::set_logger(&Printer).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    let manager = match RoutedConnectionManager::<Plain>::from_env() {
        Ok(manager) => manager,
        Err(error) => return println!("> error {error}"),
    };
    let pool = Pool::builder().max_size(1).build(manager).unwrap();
    println!("> plain {}", who(&mut pool.get().unwrap()));
    println!("> block {}", pool.get().unwrap().distributed(who));
    let mut conn = pool.get().unwrap();
    match diesel::insert_into(note::table)
        .values(note::body.eq("x"))
        .execute(&mut *conn)
    {
        Ok(_) => println!("> write done"),
        Err(error) => println!("> write {error}"),
    }
    let cluster = conn.cluster();
    println!("> mode {:?}", cluster.mode());
    for node in cluster.status().nodes {
        println!("> node {} {} {}", node.name, node.role, node.state);
    }
}

/// Runs this one test in a process with these variables and returns what it told.
fn child(dir: &Path, vars: &[(&str, String)]) -> Vec<String> {
    let test = concat!(module_path!(), "::the_environment_describes_a_cluster");
    let (_, test) = test.split_once("::").expect("a path within the crate");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([test, "--exact", "--nocapture"])
        .current_dir(dir);
    for (name, _) in std::env::vars() {
        if name.starts_with("DATABASE_") || name.starts_with("ROUTED_") {
            command.env_remove(name);
        }
    }
    let output = command
        .env(CHILD, "1")
        .envs(vars.iter().cloned())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let told = text
        .lines()
        .filter_map(|line| Some(line.split_once("> ")?.1.to_owned()));
    told.collect()
}

#[test]
fn the_environment_describes_a_cluster() {
    if std::env::var_os(CHILD).is_some() {
        return report();
    }
    let db = db(2);
    let url = |node: usize| db.cluster.url(node);
    let replicas = format!("{}#name=eu-1&weight=0\n {}#name=eu-2", url(1), url(2));
    let both = [
        ("DATABASE_URL", url(0)),
        ("DATABASE_REPLICA_URLS", replicas),
    ];
    for (what, vars, expected) in [
        (
            "a list",
            vec![],
            vec![
                "plain n0",
                "block n2",
                "write done",
                "mode Normal",
                "node eu-1 replica drained",
                "node eu-2 replica up",
            ],
        ),
        (
            "only the primary",
            vec![("DATABASE_REPLICA_URLS", "")],
            vec!["plain n0", "block n0"],
        ),
        (
            "everything to the primary",
            vec![("ROUTED_MODE", "primary_only")],
            vec!["plain n0", "block n0", "write done", "mode PrimaryOnly"],
        ),
        (
            "maintenance",
            vec![("ROUTED_MODE", "read_only")],
            vec![
                "plain n0",
                "block n2",
                "write the cluster is in read-only mode",
            ],
        ),
        (
            "blocks everywhere",
            vec![("ROUTED_DEFAULT_MODE", "distributed")],
            vec!["plain n2"],
        ),
        (
            "no primary",
            vec![("DATABASE_URL", "")],
            vec!["error DATABASE_URL is unset or empty, write the primary's connection string"],
        ),
        (
            "a typo",
            vec![("ROUTED_MODES", "normal")],
            vec!["error ROUTED_MODES is no setting"],
        ),
        (
            "a wrong value",
            vec![("ROUTED_MAX_LAG", "5")],
            vec!["error ROUTED_MAX_LAG: \"5\" is not"],
        ),
        (
            "too short",
            vec![("ROUTED_STICKY_FOR", "1s")],
            vec!["error sticky_for (1s) must be at least"],
        ),
        (
            "an option",
            vec![("DATABASE_REPLICA_URLS", "x#weight=much")],
            vec!["error option weight"],
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let vars: Vec<_> = both
            .iter()
            .cloned()
            .chain(
                vars.into_iter()
                    .map(|(name, value)| (name, value.to_owned())),
            )
            .collect();
        let told = child(dir.path(), &vars);
        for line in expected {
            assert!(
                told.iter().any(|told| told.starts_with(line)),
                "{what}: no {line:?} in {told:#?}"
            );
        }
        let errors = told.iter().filter(|line| line.starts_with("error")).count();
        let starts = told
            .iter()
            .filter(|line| line.starts_with("log INFO cluster"))
            .count();
        assert_eq!(
            starts + errors,
            1,
            "{what}: one line at the start, or an error: {told:#?}"
        );
        assert!(!told.concat().contains("://"), "{what}: {told:#?}");
    }
}

#[test]
fn variables_of_the_process_win_over_the_file() {
    let db = db(1);
    let dir = tempfile::tempdir().unwrap();
    let file = format!(
        "# of the developer\nDATABASE_URL={}\nDATABASE_REPLICA_URLS=\"{}\"\nROUTED_MODE=read_only\n",
        db.cluster.url(0),
        db.cluster.url(1)
    );
    std::fs::write(dir.path().join(".env"), file).unwrap();
    let below = dir.path().join("below");
    std::fs::create_dir(&below).unwrap();
    let told = child(&below, &[]);
    for line in ["plain n0", "block n1", "mode ReadOnly"] {
        assert!(
            told.iter().any(|told| told == line),
            "{line:?} from the file above: {told:#?}"
        );
    }
    let told = child(&below, &[("ROUTED_MODE", "normal".to_owned())]);
    assert!(told.iter().any(|told| told == "mode Normal"), "{told:#?}");
    std::fs::write(below.join(".env"), "DATABASE_URL='S3CRET").unwrap();
    let told = child(&below, &[("DATABASE_URL", db.cluster.url(0))]);
    let error = "error the .env file cannot be read or parsed, write lines of the form KEY=value";
    assert_eq!(told, [error]);
}

#[test]
fn the_mode_is_changed_while_the_cluster_runs() {
    let db = db(1);
    let cluster = db.pool.get().unwrap().cluster().clone();
    let mut conn = db.pool.get().unwrap();
    assert_eq!(cluster.mode(), ClusterMode::Normal);
    assert_eq!(conn.distributed(who), "n1");
    cluster.set_mode(ClusterMode::PrimaryOnly);
    assert_eq!(
        (cluster.mode(), conn.distributed(who)),
        (ClusterMode::PrimaryOnly, "n0".to_owned())
    );
    write(&mut conn, "writes go on");
    conn.unstick();
    cluster.set_mode(ClusterMode::ReadOnly);
    assert_eq!(conn.distributed(who), "n1");
    assert_eq!(who(&mut conn), "n0", "reads go on");
    let read_only = |error: Error| {
        assert_eq!(
            RoutedError::downcast(&error),
            Some(RoutedError::ReadOnlyMode)
        );
    };
    read_only(diesel::delete(note::table).execute(&mut conn).unwrap_err());
    read_only(
        conn.transaction(|conn| QueryResult::Ok(who(conn)))
            .unwrap_err(),
    );
    read_only(
        conn.distributed(|conn| diesel::delete(note::table).execute(conn))
            .unwrap_err(),
    );
    cluster.set_mode(ClusterMode::Normal);
    write(&mut conn, "and writes again");
    assert_eq!(bodies(&mut conn).len(), 2);
}
