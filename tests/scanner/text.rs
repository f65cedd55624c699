//! Comments and quotes, several statements, bodies of routines.
use super::*;

#[test]
fn comments_and_quotes_of_every_dialect_are_understood() {
    reads(
        &[Postgres],
        &[
            "select /* a /* nested; */ for update */ 1",
            "select 1 -- for update",
            "select 'it''s; delete from t'",
            "select 'C:\\'",
            r"select E'it\'s for update'",
            r"select e'a\\'",
            "select $$; delete from t$$",
            "select $tag$ $$ $other$ for update $tag$",
            "select a$b$, 1 from t",
            "select \"for\", \"into\", \"a\"\"b\" from t",
            "select U&'d\\0061t', B'1', X'ff', N'x'",
            "select $1::text, $2",
            "select a <@ b, a #> b, a -> 'x', a ? 'b'",
            "select t.into, t.update, 1 as for from t",
            "select u & 1, u& \"a\" from t",
        ],
    );
    primary(
        &[Postgres],
        &[
            r#"select U&"nextv\0061l"('s')"#,
            "select u&\"next!0076al\" uescape '!' ('s')",
            "select .5for update",
            "select 1 -- a\rfor update",
            "select 'C:\\' for update",
            "select /* /* */ 1",
            "select 'open",
            "select \"open",
            "select $$open",
            "select $a$open$b$",
            r"select E'open\'",
            "select E'a'\n'b\\'' for update",
            "select 1for update",
            "select 1 as as into t",
        ],
    );
    reads(
        &[Mysql],
        &[
            "select 1 # for update",
            "select 1 -- for update",
            r"select 'it\'s for update'",
            r#"select "it\"s for update""#,
            "select \"a\"\"b\", `for`, `a``b` from t",
            "select 1 --1",
            "select 5 --\tfor update",
            "select 1 /*+ no_index(t) */",
            "select /*! straight_join */ * from t",
            "select /*!40001 sql_no_cache */ * from t",
            "select /*M!100100 a, */ b from t",
            "select {d '2020-01-01'}, {fn now()}, \\N, 1e5, 0x1F, .5, 1.5e-3",
            "select 1a, t.1for, `t`.5into, 0x5into, 1e from t",
        ],
    );
    primary(
        &[Mysql],
        &[
            "select a from t where b = 1.for update",
            "select a from t where b = .5for update",
            "select a from t where b = 1e0for update",
            "select a from t where b = 1.5e-3into outfile 'x'",
            "select 1 --1\nfor update",
            "select 1 /* /* */ for update",
            "select 1 /*! for update */",
            "select 1 /*!50000 for update */",
            "select 1 /*M! for update */",
            "/*!99999 select */ delete from t",
            "/*!50000 delete from t where */ select 1",
            "select 1 for /*!99999 no */ update",
            "select 1 /*! open",
            r"select 'open\'",
            "select 1 # a\nfor update",
        ],
    );
    reads(
        &[Sqlite],
        &[
            "select [for update], `into`, \"set\" from t",
            "select :into, @for, $update, ?1 from t",
            "select 'C:\\' -- a",
            "select 1 /* /* */",
        ],
    );
    primary(
        &[Sqlite],
        &[
            "select [open",
            "select `open",
            "select 'C:\\' ; delete from t",
        ],
    );
    need(
        Postgres,
        Need::Unknown,
        &[
            "",
            " ",
            ";",
            "-- only",
            "/* only */",
            "((",
            "select (1",
            "select 1)",
            ")select 1",
            "select (1; 2)",
            "select \0",
            "'a'",
            "1",
            "hm",
        ],
    );
}

#[test]
fn one_statement_is_told_from_several() {
    reads(
        ALL,
        &[
            "select 1;",
            "select 1 ; -- end",
            ";select 1;;",
            "select ';' ; /* ; */",
        ],
    );
    form(
        Postgres,
        Form::Read,
        &[
            "select 1;",
            "(select 1)",
            "table t",
            "show x",
            "select 1 for update",
        ],
    );
    form(
        Postgres,
        Form::Dml,
        &[
            "insert into t values (1);",
            "update t set a = 1 returning id",
            "delete from t",
            "merge into t using u on true when matched then delete",
            "with a as (select 1), b (x, y) as (values (1, 2)) insert into t select * from a",
            "with recursive update as (select 1) update t set a = 1",
            "insert into t with x as (select 1) select * from x",
        ],
    );
    form(
        Sqlite,
        Form::Dml,
        &[
            "replace into t values (1)",
            "insert or replace into t values (1)",
        ],
    );
    form(
        Postgres,
        Form::Other,
        &[
            "with a as (delete from t returning *) select * from a",
            "with a as (delete from t returning *) insert into u select * from a",
            "with a as (with b as (select 1) delete from t returning *) select * from a",
            "create table t (id int)",
            "set x = 1",
            "explain analyze insert into t values (1)",
            "explain update t set a = 1",
            "select 'open",
        ],
    );
    form(
        Postgres,
        Form::Routine,
        &["call p()", "do $$ begin commit; end $$", "execute p"],
    );
    form(
        Mysql,
        Form::Routine,
        &[
            "do sleep(1)",
            "begin not atomic insert into t values (1); commit; end",
        ],
    );
    form(
        Postgres,
        Form::Transaction,
        &[
            "begin",
            "start transaction read only",
            "commit",
            "end",
            "abort",
            "rollback to a",
            "prepare transaction 'a'",
        ],
    );
    form(
        Mysql,
        Form::Other,
        &[
            "start slave",
            "start group_replication",
            "prepare p from 'select 1'",
        ],
    );
    form(
        Postgres,
        Form::Batch,
        &[
            "select 1; select 2",
            "begin; insert into t values (1); commit",
            "delete from t; delete from u",
        ],
    );
    need(Postgres, Need::Unknown, &["select 1; select 2"]);
}

#[test]
fn the_body_of_a_routine_is_no_batch() {
    form(
        Sqlite,
        Form::Other,
        &[
            "create trigger a after insert on t begin update t set x = case when 1 then 2 end; delete from u; end;",
        ],
    );
    form(
        Mysql,
        Form::Other,
        &[
            "create procedure p() begin declare x int; if x then set x = 1; end if; case x when 1 then begin end; end case; \
             while x do select case x when 1 then 2 end; end while; end",
            "create definer=`a`@`b` trigger t before insert on u for each row begin set new.a = 1; end;",
        ],
    );
    form(
        Postgres,
        Form::Other,
        &[
            "create function f() returns int begin atomic select 1; select case when true then 2 end; end",
            "create function begin() returns int language sql as $$ select 1; $$",
            "create rule r as on insert to t do (delete from u; delete from v)",
        ],
    );
    transaction(
        Sqlite,
        TransactionEffect::None,
        &["create trigger a after insert on t begin delete from u; end"],
    );
    form(
        Mysql,
        Form::Batch,
        &["create procedure p() begin end; select 1"],
    );
}
