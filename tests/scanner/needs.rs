//! Why statements need the primary.
use super::*;

#[test]
fn a_need_names_the_function_and_session_state_hides_no_other_need() {
    for (dialect, sql, expected) in [
        (Postgres, "select f(1), NextVal('s'), lastval()", "nextval"),
        (Postgres, "select \"nextval\"('s')", "nextval"),
        (Postgres, "select pg_catalog.nextval('s')", "nextval"),
        (Postgres, "select public.dblink('a')", "dblink"),
        (Postgres, "select extensions.http_get('a')", "http_get"),
        (
            Postgres,
            "select pg_terminate_backend(1)",
            "pg_terminate_backend",
        ),
        (Postgres, "select pg_backend_pid()", "pg_backend_pid"),
        (Mysql, "select @a, last_insert_id()", "last_insert_id"),
        (Mysql, "select `last_insert_id`()", "last_insert_id"),
        (Mysql, "select next value for s", "next value for"),
        (Mysql, "select s.nextval from dual", "nextval"),
        (Mysql, "select test.s.CURRVAL", "currval"),
        (Mysql, "select previous value for s", "previous value for"),
        (Sqlite, "select last_insert_rowid()", "last_insert_rowid"),
        (Sqlite, "select changes() + total_changes()", "changes"),
        (Sqlite, "select load_extension('x')", "load_extension"),
    ] {
        match classify(dialect, sql).need() {
            Need::Function(name) => assert_eq!(name.to_string(), expected, "{sql}"),
            other => panic!("{other:?} instead of a function: {sql}"),
        }
    }
    need(
        Mysql,
        Need::SessionState,
        &[
            "select @a",
            "select @a := 1",
            "select a into @b from t",
            "select @@last_insert_id, @@identity",
            "select @@session.last_gtid",
            "select @@session.`last_insert_id`",
            "select @@session . last_insert_id",
            "select @@session. last_insert_id",
            "select sql_calc_found_rows * from t",
            "show warnings",
            "show count(*) errors",
            "set @a = 1",
            "set names utf8mb4",
        ],
    );
    reads(
        &[Mysql],
        &[
            "select @@global.read_only, @@session.sql_mode, @@version",
            "select @@`sql_mode`, @@session.`sql_mode` `a b`",
            "show warnings_table",
        ],
    );
    need(
        Mysql,
        Need::Write,
        &[
            "set global a = 1",
            "select 1 into outfile 'x'",
            "analyze table t",
            "analyze select 1",
        ],
    );
    need(
        Postgres,
        Need::Write,
        &[
            "select 1 into temp t",
            "with a as (update t set b = 1 returning *) table a",
        ],
    );
    reads(
        &[Postgres],
        &[
            "select nextval from t",
            "select t.nextval from t",
            "select \"NEXTVAL\"('s')",
        ],
    );
}

#[test]
fn explain_is_like_what_it_explains() {
    reads(
        &[Postgres],
        &[
            "explain (analyze, buffers off, format json) select 1",
            "explain verbose select 1",
            "explain (select 1)",
            "explain analyze with a as (select 1) table a",
        ],
    );
    reads(
        &[Mysql],
        &[
            "explain format=json select 1",
            "explain extended select 1",
            "explain `t`",
            "describe t 'a%'",
            "explain (select 1)",
        ],
    );
    reads(
        &[Sqlite],
        &["explain query plan select 1", "explain select 1"],
    );
    primary(
        ALL,
        &[
            "explain delete from t",
            "explain analyze update t set a = 1",
            "explain with a as (select 1) delete from t",
            "explain",
        ],
    );
    primary(
        &[Postgres],
        &[
            "explain (analyze) select nextval('s')",
            "explain analyze execute p",
            "explain (analyze) select 1 for update",
        ],
    );
    primary(
        &[Mysql],
        &[
            "explain for connection 5",
            "explain format=json for connection 5",
            "explain into @a select 1",
            "explain into @a select 1",
        ],
    );
}

#[test]
fn pragmas_read_only_where_they_are_known_to() {
    reads(
        &[Sqlite],
        &[
            "pragma table_info(t)",
            "pragma main.table_info('t')",
            "PRAGMA user_version",
            "pragma integrity_check",
            "pragma foreign_key_list(t);",
        ],
    );
    primary(
        &[Sqlite],
        &[
            "pragma user_version = 1",
            "pragma user_version(1)",
            "pragma foreign_keys",
            "pragma foreign_keys = on",
            "pragma journal_mode = wal",
            "pragma x",
        ],
    );
    keeps(
        Sqlite,
        Keeps::State,
        &[
            "pragma foreign_keys = on",
            "pragma foreign_keys(1)",
            "attach 'x' as y",
        ],
    );
    keeps(
        Sqlite,
        Keeps::Nothing,
        &["pragma table_info(t)", "pragma foreign_keys"],
    );
    primary(&[Postgres, Mysql], &["pragma table_info(t)"]);
}

#[test]
fn an_application_knows_its_own_functions_best() {
    let rules = Rules::new(Postgres)
        .primary_functions(["Register", "audit.log", "lower"])
        .replica_functions(["vouched", "app.also", "pg_backend_pid", "register"]);
    for (sql, primary, purity) in [
        ("select register(1)", true, Purity::Unproven),
        ("select app.REGISTER(1)", true, Purity::Unproven),
        ("select audit.log(1)", true, Purity::Unproven),
        ("select log(1)", false, Purity::Pure),
        ("select lower('A')", true, Purity::Unproven),
        (
            "select Vouched(1), any_schema.vouched(1)",
            false,
            Purity::Pure,
        ),
        ("select app.also(1)", false, Purity::Pure),
        ("select also(1)", false, Purity::Unproven),
        ("select pg_backend_pid()", false, Purity::Pure),
    ] {
        let kind = rules.classify(sql);
        assert_eq!(
            (kind.needs_primary(), kind.purity()),
            (primary, purity),
            "{sql}"
        );
    }
    let strict = rules.unknown_functions(UnknownFunctions::Primary);
    for (sql, expected) in [
        ("select vouched(1), lower2(1)", "lower2"),
        (
            "select \u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}_\u{e4}\u{e4}(1)",
            "\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}\u{e4}_",
        ),
    ] {
        match strict.classify(sql).need() {
            Need::Function(name) => assert_eq!(name.as_str(), expected, "{sql}"),
            other => panic!("{other:?} instead of an unknown function: {sql}"),
        }
    }
    assert!(
        !strict
            .classify("select vouched(1), upper('a'), x in (1) from t")
            .needs_primary()
    );
}
