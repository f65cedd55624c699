//! What statements change, and what they leave behind.
use super::*;

#[test]
fn a_read_is_pure_if_it_calls_only_what_is_known() {
    purity(
        Postgres,
        Purity::Pure,
        &[
            "select count(*) filter (where a), sum(b) over (partition by c order by d) from t",
            "select percentile_cont(0.5) within group (order by a) from t",
            "select now(), random(), gen_random_uuid(), clock_timestamp(), current_timestamp(3), current_user",
            "select cast(a as varchar(10)), b::numeric(10, 2), c::public.geometry(point, 4326), d::character varying(5) from t",
            "select * from t where a in (1, 2) and (b) or not (c) and exists (select 1) and d = any (array[1])",
            "select * from (values (1, 2)) t(a, b) join u using (a), generate_series(1, 2) as g(x)",
            "with x (a, b) as (select 1, 2), y(c) as not materialized (select 3) select * from x, y",
            "with x(a) as (values (1)) (select * from x) order by lower('A')",
            "select * from (with x (a) as (select 1) select * from x) y",
            "select * from json_to_record('{}') as x(a int, b varchar(10), c numeric(5, 2))",
            "select distinct on (a) lower(b) from t",
            "select a operator(pg_catalog.+) (b), extract(year from c), trim(both from d), row(1, 2) from t",
            "select pg_catalog.lower('A'), \"lower\"('A'), coalesce(a, b), greatest(1, 2), interval(3) '1 second' from t",
            "select similarity(a, b), uuid_generate_v4(), crypt(a, gen_salt('bf')), st_dwithin(a, b, 1) from t",
            "select xmlelement(name foo, xmlattributes(a as b)), json_object('a': 1), lag(a) over w from t window w as (order by a)",
            "select a from t tablesample system (10) repeatable (1) group by grouping sets ((a), rollup (a, b), cube (a))",
            "explain select lower('A')",
            "show search_path",
            "set search_path = a",
        ],
    );
    purity(
        Postgres,
        Purity::Unproven,
        &[
            "select my_func(1)",
            "select \"my_func\"(1)",
            "select \"Lower\"('A')",
            "select public.lower('A')",
            "select * from my_table_func(1) as t(a)",
            "select distinct on (a) my_func(b) from t",
            "select a operator(pg_catalog.+) my_func(b) from t",
            "with x as (select my_func(1)) select * from x",
            "with x as (select 1) select my_func(2) from x",
            "explain analyze select my_func(1)",
            "select delete(a, 'b') from t",
            "insert into t values (1)",
            "select nextval('s')",
        ],
    );
    purity(
        Mysql,
        Purity::Pure,
        &[
            "select count(distinct a), group_concat(b order by c separator ','), if(a, b, c), left(a, 1), replace(a, 'b', 'c') from t",
            "select convert(a, char(10)), convert(b using utf8mb4), cast(c as decimal(10, 2)), date_add(d, interval (1) day) from t",
            "select * from t use index (a) where match (a) against ('b') and b div (c) and d regexp ('e') and (f, g) in ((1, 2))",
            "select json_extract(a, '$.b'), a->>'$.b', st_distance_sphere(a, b), regexp_like(a, 'b'), uuid_to_bin(uuid()) from t",
            "select insert('abc', 1, 1, 'x'), (insert('abc', 1, 1, 'x')), (replace('a', 'b', 'c'))",
            "select row_number() over (partition by a), any_value(b), grouping(c) from t group by c with rollup",
            "select * from json_table('[]', '$[*]' columns (a varchar(10) path '$.a')) as j",
            "select * from t partition (p0, p1) join lateral (select 1) as d on true",
        ],
    );
    purity(
        Mysql,
        Purity::Unproven,
        &[
            "select my_func(1)",
            "select `my_func`(1)",
            "select db.lower('A')",
            "select \"f\"(1)",
        ],
    );
    purity(
        Sqlite,
        Purity::Pure,
        &[
            "select julianday('now'), json_extract(a, '$.b'), group_concat(a), iif(a, b, c), total(d) from t",
            "select * from json_each(a), pragma_table_info('t'), generate_series(1, 2)",
            "select cast(a as varchar(10)), printf('%d', 1), random() from t where a glob ('x*')",
        ],
    );
    purity(
        Sqlite,
        Purity::Unproven,
        &["select my_func(1)", "select [my_func](1)"],
    );
}

#[test]
fn what_outlives_a_statement_in_its_session_is_told() {
    keeps(
        Postgres,
        Keeps::State,
        &[
            "set search_path = a",
            "set session characteristics as transaction read write",
            "set role a",
            "reset all",
            "discard all",
            "listen a",
            "declare c cursor with hold for select 1",
            "prepare p as select 1",
            "load 'auto_explain'",
            "create temp table t (id int)",
            "create temporary view v as select 1",
            "create or replace local temp view v as select 1",
            "create table pg_temp.t (id int)",
            "create table \"pg_temp\".\"t\" (id int)",
            "select 1 into temp t",
            "select 1 into local temp t",
            "select pg_advisory_lock(1)",
            "select pg_try_advisory_lock_shared(1)",
            "insert into t select pg_advisory_lock(1)",
            "select set_config('a', 'b', true)",
            "select dblink_connect('a')",
            "select 1; set x = 1; select 2",
        ],
    );
    keeps(
        Postgres,
        Keeps::Nothing,
        &[
            "select 1",
            "set local x = 1",
            "set transaction read only",
            "set constraints all deferred",
            "select pg_advisory_xact_lock(1)",
            "declare c cursor for select 1",
            "lock table t",
            "create table t (temp int)",
            "prepare transaction 'a'",
            "begin",
            "notify a",
            "select f(a := 1)",
        ],
    );
    keeps(
        Mysql,
        Keeps::State,
        &[
            "set @a = 1",
            "set names utf8mb4",
            "set local x = 1",
            "set transaction read only",
            "select @a := 1",
            "select a into @b from t",
            "insert into t values (@a := 1)",
            "select get_lock('a', 1)",
            "do get_lock('a', 1)",
            "lock tables t write",
            "use db",
            "create temporary table t (id int)",
            "prepare p from 'select 1'",
            "handler t open",
            "flush tables with read lock",
        ],
    );
    keeps(
        Mysql,
        Keeps::Nothing,
        &[
            "select @a",
            "set password = 'x'",
            "set statement a = 1 for select 1",
            "show warnings",
            "load data infile 'x' into table t",
            "flush tables",
            "select sql_calc_found_rows 1",
        ],
    );
    keeps(
        Sqlite,
        Keeps::State,
        &[
            "create temp table t (id)",
            "create temp trigger a after insert on t begin select 1; end",
        ],
    );
}

#[test]
fn what_becomes_of_the_transaction_is_told() {
    use TransactionEffect::{Closes, None, Opens};
    transaction(
        Postgres,
        Opens,
        &[
            "begin",
            "begin read only",
            "start transaction",
            "begin; select 1",
            "commit; begin",
            "begin; commit and chain",
        ],
    );
    transaction(
        Postgres,
        Closes,
        &[
            "commit",
            "end",
            "abort",
            "rollback",
            "rollback work",
            "commit and no chain",
            "prepare transaction 'a'",
            "begin; insert into t values (1); commit",
        ],
    );
    transaction(
        Postgres,
        None,
        &[
            "select 1",
            "rollback to a",
            "rollback to savepoint a",
            "rollback and chain",
            "commit prepared 'a'",
            "savepoint a",
            "release a",
            "create table begin (a int)",
        ],
    );
    transaction(
        Mysql,
        Opens,
        &[
            "begin work",
            "start transaction with consistent snapshot",
            "set autocommit = 0",
            "set @@autocommit=off",
            "set @a = 1, session autocommit = 0",
            "set @@session.autocommit := @old",
            "set @@session.`autocommit` = 0",
            "xa start 'a'",
        ],
    );
    transaction(
        Mysql,
        None,
        &[
            "set autocommit = 1",
            "set autocommit=ON",
            "set @@autocommit = default",
            "set @@global.autocommit = 0",
            "start slave",
            "begin not atomic select 1; end",
            "select @@autocommit = 0",
        ],
    );
    transaction(
        Mysql,
        Closes,
        &["commit", "rollback", "commit release", "xa commit 'a'"],
    );
    transaction(Sqlite, Opens, &["begin immediate", "savepoint a"]);
    transaction(Sqlite, Closes, &["commit transaction", "end transaction"]);
    transaction(Sqlite, None, &["rollback transaction to savepoint a"]);
}
