//! Where Makara sends statements, and where they belong.
use super::*;

#[test]
fn what_makara_sends_to_the_primary_goes_there() {
    primary(
        ALL,
        &[
            "insert into dogs...",
            "insert into cats (select * from felines)",
            "savepoint active_record_1",
            "begin",
            "rollback",
            "update users set",
            "delete from people",
            "release savepoint",
            "commit",
            "with fence as (select * from felines) insert to cats",
            "INSERT INTO wisdom ('The truth will set you free.')",
            "INSERT INTO wisdom ('The truth will\nset you free.')",
            "UPDATE\n  dogs\nSET\n  max_treats = 10\nWHERE\n  max_treats IS NULL",
            "begin deferred transaction",
            "rollback transaction",
            "test",
        ],
    );
    primary(
        &[Mysql],
        &[
            "set @@things",
            "SET @@things",
            "SET @t1 = 1",
            "select * from users lock in share mode",
            "select get_lock('foo', 0)",
            "select release_lock('foo')",
        ],
    );
    primary(
        &[Postgres],
        &[
            "SET TimeZone = 'UTC'",
            "select nextval('users_id_seq')",
            "select currval('users_id_seq')",
            "select lastval()",
            "select pg_advisory_lock(12345)",
            "select pg_advisory_unlock(12345)",
        ],
    );
    primary(
        &[Postgres, Mysql],
        &[
            "select * from users for update",
            "    select * from users for update",
        ],
    );
}

#[test]
fn what_makara_reads_from_replicas_is_a_read() {
    reads(
        ALL,
        &[
            "select * from felines",
            "    select * from felines",
            "select * from users where name = 'for update'",
            "select * from users where name = 'lock in share mode'",
            "with fence as (select * from users) select * from fence",
            "SELECT name FROM users ORDER BY id DESC LIMIT 1",
            "SELECT 1 AS one FROM users LIMIT 1",
            "SELECT count(*) FROM users",
        ],
    );
    reads(
        &[Mysql],
        &[
            "select * from users where name = \"for update\"",
            "select * from users where name = \"lock in share mode\"",
            "SELECT SLEEP(2)",
            "show tables",
            "show full tables",
            "show fields",
            "show index",
            "describe stuff",
            "desc t",
            "explain things",
        ],
    );
}

#[test]
fn what_makara_gets_wrong_is_right() {
    primary(
        &[Postgres, Mysql],
        &[
            "select * from t for update;",
            "select * from t\nwhere id = 1\nfor update",
            "select * from t for\nupdate",
            "select * from t for update nowait",
            "select * from t for update skip locked",
            "select * from t for update of t",
            "select * from t for update -- now",
            "select * from t for no key update",
            "select * from t for share",
            "select * from t for key share",
            "select * from t lock\nin share mode;",
            "with a as (insert into t values (1) returning id) select * from a",
            "with a as (delete from t returning id) select * from a",
            "with a as (select 1) insert into t (x) select 1",
            "with a as (select 1) update t set x = 1",
            "select 1; delete from t",
            "select * into u from t",
            "select nextval ('s')",
            "select\n  nextval('s')",
        ],
    );
    reads(
        ALL,
        &[
            "with a as (\n  select 1\n)\nselect *\nfrom a",
            "with a as (select 1) (select * from a)",
            "(select 1)",
            "(select 1) union (select 2)",
            "/* who */ select 1",
            "-- who\nselect 1",
            "select*from t",
            "VALUES (1)",
            "select 'nextval('",
            "select 'a lastval() b'",
        ],
    );
    primary(
        &[Postgres],
        &[
            "select setval('s', 1)",
            "select pg_try_advisory_lock(1)",
            "select pg_advisory_xact_lock(1)",
            "select pg_try_advisory_xact_lock_shared(1)",
            "select pg_advisory_unlock_all()",
            "select pg_notify('a', 'b')",
            "select lo_create(0)",
            "select txid_current()",
            "select set_config('a.b', 'c', false)",
            "discard all",
            "reset all",
            "listen a",
            "notify a",
            "lock table t",
            "call p()",
            "do $$ begin end $$",
            "prepare p as select 1",
            "execute p",
            "deallocate p",
            "declare c cursor for select 1",
            "fetch c",
            "copy t to stdout",
            "set role a",
            "set session authorization a",
            "set transaction isolation level serializable",
        ],
    );
    primary(
        &[Mysql],
        &[
            "select last_insert_id(), row_count(), found_rows()",
            "select release_all_locks()",
            "select is_free_lock('a')",
            "select * from t into outfile '/x'",
            "select id into @a from t",
            "select @a := 1",
            "set@a=1",
            "set global x = 1",
            "set password = 'x'",
            "use db",
            "lock tables t read",
            "unlock tables",
            "explain analyze delete from t",
        ],
    );
    reads(
        &[Postgres, Mysql],
        &[
            "TABLE t",
            "explain select 1",
            "explain analyze select 1",
            "show all",
        ],
    );
}
