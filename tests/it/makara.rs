//! The statements that Makara's own tests name, and those that it sends to the wrong node: where they belong.

use diesel_routed::Role::{self, Primary, Replica};
use diesel_routed::statement::Dialect::{self, Mysql, Postgres, Sqlite};
use diesel_routed::statement::classify;

const ALL: &[Dialect] = &[Postgres, Mysql, Sqlite];
const SERVERS: &[Dialect] = &[Postgres, Mysql];
const PG: &[Dialect] = &[Postgres];
const MY: &[Dialect] = &[Mysql];

type Row = (&'static [Dialect], &'static str, Role);

/// What Makara decides, where it is right; what it sends to all nodes needs the primary here, which keeps the session.
pub const RIGHT: &[Row] = &[
    // pool decisions
    (ALL, "insert into dogs...", Primary),
    (ALL, "insert into cats (select * from felines)", Primary),
    (ALL, "savepoint active_record_1", Primary),
    (ALL, "begin", Primary),
    (ALL, "rollback", Primary),
    (ALL, "update users set", Primary),
    (ALL, "delete from people", Primary),
    (ALL, "release savepoint", Primary),
    (ALL, "commit", Primary),
    (MY, "set @@things", Primary),
    (MY, "SET @@things", Primary),
    (ALL, "select * from felines", Replica),
    (ALL, "    select * from felines", Replica),
    (SERVERS, "select * from users for update", Primary),
    (SERVERS, "    select * from users for update", Primary),
    (MY, "select * from users lock in share mode", Primary),
    (
        ALL,
        "select * from users where name = \"for update\"",
        Replica,
    ),
    (
        ALL,
        "select * from users where name = \"lock in share mode\"",
        Replica,
    ),
    (PG, "select nextval('users_id_seq')", Primary),
    (PG, "select currval('users_id_seq')", Primary),
    (PG, "select lastval()", Primary),
    (
        ALL,
        "with fence as (select * from users) select * from fence",
        Replica,
    ),
    (
        ALL,
        "with fence as (select * from felines) insert to cats",
        Primary,
    ),
    (MY, "select get_lock('foo', 0)", Primary),
    (MY, "select release_lock('foo')", Primary),
    (PG, "select pg_advisory_lock(12345)", Primary),
    (PG, "select pg_advisory_unlock(12345)", Primary),
    // broadcasts
    (
        ALL,
        "INSERT INTO wisdom ('The truth will set you free.')",
        Primary,
    ),
    (
        ALL,
        "INSERT INTO wisdom ('The truth will\nset you free.')",
        Primary,
    ),
    (
        ALL,
        "UPDATE dogs SET max_treats = 10 WHERE max_treats IS NULL",
        Primary,
    ),
    (
        ALL,
        "UPDATE\n  dogs\nSET\n  max_treats = 10\nWHERE\n  max_treats IS NULL",
        Primary,
    ),
    // sticking
    (ALL, "update users", Primary),
    (ALL, "insert into", Primary),
    (ALL, "delete from", Primary),
    (ALL, "begin transaction", Primary),
    (ALL, "begin deferred transaction", Primary),
    (ALL, "commit transaction", Primary),
    (ALL, "rollback transaction", Primary),
    // live databases
    (ALL, "insert into users values (a,b,c)", Primary),
    (ALL, "update users set name = \"phil\"", Primary),
    (MY, "SET @t1 = 1", Primary),
    (PG, "SET TimeZone = 'UTC'", Primary),
    (ALL, "SELECT * FROM users", Replica),
    (
        ALL,
        "SELECT name FROM users ORDER BY id DESC LIMIT 1",
        Replica,
    ),
    (ALL, "SELECT 1 AS one FROM users LIMIT 1", Replica),
    (ALL, "SELECT count(*) FROM users", Replica),
    (ALL, "SELECT COUNT(*) FROM users", Replica),
    (ALL, "SELECT * FROM users WHERE id = 1", Replica),
    (ALL, "SELECT 1", Replica),
    (ALL, "UPDATE users SET name = \"bob\" WHERE id = 1", Primary),
    (ALL, "INSERT INTO users (name) VALUES ('John')", Primary),
    (MY, "SELECT SLEEP(2)", Replica),
    (PG, "create extension postgis", Primary),
    (ALL, "create table users (id integer)", Primary),
    (SERVERS, "truncate table users", Primary),
    (ALL, "test", Primary),
];

/// What Makara gets wrong, or sends to the primary needlessly.
pub const WRONG: &[Row] = &[
    (SERVERS, "select * from t for update;", Primary),
    (SERVERS, "select *\nfrom t\nfor update", Primary),
    (SERVERS, "select * from t for\nupdate", Primary),
    (SERVERS, "select * from t for update nowait", Primary),
    (SERVERS, "select * from t for update skip locked", Primary),
    (PG, "select * from t for update of t", Primary),
    (SERVERS, "select * from t for update /* now */", Primary),
    (PG, "select * from t for no key update", Primary),
    (PG, "select * from t for share", Primary),
    (PG, "select * from t for key share", Primary),
    (MY, "select * from t\nlock in\nshare mode", Primary),
    (MY, "select * from t lock in share mode;", Primary),
    (
        PG,
        "with a as (insert into t values (1) returning *) select * from a",
        Primary,
    ),
    (
        PG,
        "with a as (delete from t returning *) select * from a",
        Primary,
    ),
    (
        ALL,
        "with a as (select 1) insert into t (id) select 1",
        Primary,
    ),
    (ALL, "with a as (select 1) insert into t select 1", Primary),
    (ALL, "with a as (select 1) update t set id = 1", Primary),
    (ALL, "with a as (select 1) delete from t", Primary),
    (
        ALL,
        "with a as (\n  select 1 as id\n)\nselect *\nfrom a",
        Replica,
    ),
    (SERVERS, "with a as (select 1) (select * from a)", Replica),
    (SERVERS, "(select 1)", Replica),
    (SERVERS, "(select 1) union (select 2)", Replica),
    (ALL, "/* who */ select 1", Replica),
    (ALL, "-- who\nselect 1", Replica),
    (MY, "/* who */ set @a = 1", Primary),
    (ALL, "select*from t", Replica),
    (ALL, "VALUES (1)", Replica),
    (PG, "TABLE t", Replica),
    (PG, "select setval('s', 1)", Primary),
    (MY, "select last_insert_id()", Primary),
    (MY, "select row_count()", Primary),
    (MY, "select found_rows()", Primary),
    (PG, "select pg_try_advisory_lock(1)", Primary),
    (PG, "select pg_advisory_xact_lock(1)", Primary),
    (PG, "select pg_advisory_lock_shared(1)", Primary),
    (PG, "select pg_try_advisory_xact_lock_shared(1)", Primary),
    (PG, "select pg_advisory_unlock_all()", Primary),
    (MY, "select release_all_locks()", Primary),
    (MY, "select is_free_lock('a')", Primary),
    (PG, "select nextval ('s')", Primary),
    (PG, "select\n  nextval('s')", Primary),
    (ALL, "select 'nextval('", Replica),
    (ALL, "select 'a lastval() b'", Replica),
    (PG, "select * into u from t", Primary),
    (MY, "select * from t into outfile '/nowhere/t'", Primary),
    (MY, "select id from t limit 1 into @a", Primary),
    (MY, "select @a := 1", Primary),
    (PG, "select pg_notify('a', 'b')", Primary),
    (PG, "select lo_create(0)", Primary),
    (PG, "select txid_current()", Primary),
    (PG, "select set_config('a.b', 'c', false)", Primary),
    (ALL, "select 1; delete from t", Primary),
    (MY, "show tables", Replica),
    (MY, "show full tables", Replica),
    (MY, "show index from t", Replica),
    (MY, "show create table t", Replica),
    (MY, "show columns from t", Replica),
    (MY, "show variables", Replica),
    (PG, "show server_version", Replica),
    (MY, "show processlist", Primary),
    (MY, "show slave status", Primary),
    (ALL, "explain select 1", Replica),
    (PG, "explain analyze delete from t", Primary),
    (MY, "describe t", Replica),
    (MY, "desc t", Replica),
    (MY, "use app", Primary),
    (PG, "discard all", Primary),
    (PG, "reset all", Primary),
    (PG, "listen a", Primary),
    (PG, "notify a", Primary),
    (PG, "lock table t", Primary),
    (MY, "lock tables t read", Primary),
    (MY, "unlock tables", Primary),
    (SERVERS, "call p()", Primary),
    (PG, "do $$ begin end $$", Primary),
    (MY, "do sleep(0)", Primary),
    // a transaction as text keeps the handle on the primary; `read_only_transaction` is the way to a replica
    (SERVERS, "start transaction read only", Primary),
    (PG, "prepare x as select 1", Primary),
    (MY, "prepare x from 'select 1'", Primary),
    (SERVERS, "execute x", Primary),
    (PG, "deallocate x", Primary),
    (PG, "declare c cursor for select 1", Primary),
    (PG, "fetch c", Primary),
    (PG, "copy t to stdout", Primary),
    (
        SERVERS,
        "set transaction isolation level serializable",
        Primary,
    ),
    (PG, "set role app", Primary),
    (PG, "set session authorization app", Primary),
    (MY, "set password = 'x'", Primary),
    (MY, "set global max_connections = 5", Primary),
    (MY, "set@a=1", Primary),
];

#[test]
fn what_makara_sends_to_the_right_node_goes_there() {
    check(RIGHT);
}

#[test]
fn what_makara_sends_to_the_wrong_node_goes_to_the_right_one() {
    check(WRONG);
}

fn check(rows: &[Row]) {
    for (dialects, sql, expected) in rows {
        for dialect in *dialects {
            let role = match classify(*dialect, sql).needs_primary() {
                true => Primary,
                false => Replica,
            };
            assert_eq!(role, *expected, "{dialect:?}: {sql:?}");
        }
    }
}
