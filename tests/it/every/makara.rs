//! What Makara's tests name and what it gets wrong, run on servers: their own logs tell which one ran it.

use diesel_routed::statement::Dialect;
use diesel_routed::{ReplicatedConnection, Role};

use super::backend::*;
use crate::makara::{RIGHT, WRONG};

/// Statements that are cut short, or that need what a test has no use for.
const NOT_RUN: &[&str] = &[
    "insert into dogs...",
    "savepoint active_record_1",
    "update users set",
    "release savepoint",
    "set @@things",
    "SET @@things",
    "select currval('users_id_seq')",
    "select lastval()",
    "with fence as (select * from felines) insert to cats",
    "INSERT INTO wisdom ('The truth will set you free.')",
    "INSERT INTO wisdom ('The truth will\nset you free.')",
    "update users",
    "insert into",
    "delete from",
    "begin deferred transaction",
    "insert into users values (a,b,c)",
    "SELECT SLEEP(2)",
    "create extension postgis",
    "create table users (id integer)",
    "test",
    "select * from t into outfile '/nowhere/t'",
    "lock table t",
    "execute x",
    "deallocate x",
    "declare c cursor for select 1",
    "fetch c",
    "copy t to stdout",
    "set role app",
    "set session authorization app",
    "set password = 'x'",
    "set global max_connections = 5",
    "show slave status",
];

const NOT_IN_MARIADB: &[&str] = &[
    "commit transaction",
    "rollback transaction",
    "begin transaction",
    "with a as (select 1) insert into t (id) select 1",
    "with a as (select 1) insert into t select 1",
    "with a as (select 1) update t set id = 1",
    "with a as (select 1) delete from t",
];

const NOT_IN_MYSQL: &[&str] = &[
    "VALUES (1)",
    // logged in other words, without the comment
    "prepare x from 'select 1'",
];

const TABLES: &[&str] = &[
    "CREATE TABLE cats (id INTEGER, name VARCHAR(20))",
    "CREATE TABLE felines (id INTEGER, name VARCHAR(20))",
    "CREATE TABLE people (id INTEGER)",
    "CREATE TABLE dogs (max_treats INTEGER)",
    "CREATE TABLE t (id INTEGER)",
    "INSERT INTO t VALUES (1)",
];

/// Runs each statement in a block of its own, with a mark that the logs show.
fn check(rows: &[(&[Dialect], &str, Role)]) {
    let db = db(1);
    let mut conn = db.pool.get().unwrap();
    TABLES
        .iter()
        .chain(super::MAKARA)
        .for_each(|statement| batch(&mut conn, statement));
    drop(conn);
    db.cluster.wait_replicated();
    (0..2).for_each(|node| super::log_statements(&db.cluster, node));
    let runs = |row: &&(&[Dialect], &str, Role)| {
        let unknown = match NAME {
            "mariadb" => NOT_IN_MARIADB.contains(&row.1),
            "mysql" => NOT_IN_MARIADB.contains(&row.1) || NOT_IN_MYSQL.contains(&row.1),
            _ => false,
        };
        row.0.contains(&Plain::DIALECT) && !NOT_RUN.contains(&row.1) && !unknown
    };
    for (number, (_, statement, role)) in rows.iter().filter(runs).enumerate() {
        // names in double quotes are MySQL's text
        let statement = match Plain::DIALECT {
            Dialect::Mysql => (*statement).to_owned(),
            _ => statement.replace('"', "'"),
        };
        let mark = format!("statement {number} of Makara");
        let marked = format!("/* {mark} */ {statement}");
        let mut conn = db.pool.get().unwrap();
        conn.distributed(|conn| batch(conn, &marked));
        let ran: Vec<usize> = (0..2)
            .filter(|node| super::has_logged(&db.cluster, *node, &mark))
            .collect();
        let expected = match role {
            Role::Primary => 0,
            Role::Replica => 1,
        };
        assert_eq!(ran, [expected], "{statement}");
    }
}

#[test]
fn makara_statements_run_where_they_belong() {
    check(RIGHT);
}

#[test]
fn statements_that_makara_gets_wrong_run_where_they_belong() {
    check(WRONG);
}
