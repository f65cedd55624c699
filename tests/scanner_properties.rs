//! What holds for every text.
use diesel_routed::statement::{Dialect, Form, Keeps, Need, TransactionEffect, classify};
use proptest::prelude::*;

fn dialect() -> impl Strategy<Value = Dialect> {
    prop_oneof![
        Just(Dialect::Postgres),
        Just(Dialect::Mysql),
        Just(Dialect::Sqlite)
    ]
}

/// Text of pieces that mean something to a scanner.
fn pieces() -> impl Strategy<Value = String> {
    let piece = proptest::sample::select(vec![
        "SELECT ",
        "select",
        "(",
        ")",
        "'",
        "\"",
        "`",
        "[",
        "]",
        "--",
        "-- x\n",
        "#",
        "/*",
        "*/",
        "/*!",
        "/*M!",
        "/*!50000 ",
        "$$",
        "$a$",
        "$1",
        "E'",
        "\\",
        "\\'",
        "''",
        ";",
        ",",
        ".",
        "::",
        ":=",
        ":a",
        "=",
        "@",
        "@a",
        "@@b.c",
        "?",
        " ",
        "\n",
        "\r",
        "\0",
        "1",
        "1.5e3",
        "0x",
        "INSERT ",
        "DELETE FROM t ",
        "WITH ",
        "RECURSIVE ",
        "x ",
        "AS ",
        "AS (",
        "FOR ",
        "UPDATE ",
        "SHARE ",
        "LOCK ",
        "IN ",
        "INTO ",
        "BEGIN ",
        "END ",
        "CASE ",
        "CREATE ",
        "TRIGGER ",
        "TEMP ",
        "SET ",
        "COMMIT ",
        "ROLLBACK TO ",
        "EXPLAIN ",
        "ANALYZE ",
        "SHOW ",
        "PRAGMA ",
        "table_info",
        "f(",
        "nextval(",
        "pg_temp",
        "lower(",
        "é",
        "\u{a0}",
        "autocommit ",
        "VALUES ",
        "DISTINCT ON (",
        "OPERATOR(",
        "START TRANSACTION ",
        "NEXT VALUE FOR ",
    ]);
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Statements of each kind, whole.
const STATEMENTS: &[&str] = &[
    "SELECT 1",
    "SELECT lower(a), f(b) FROM t WHERE c IN (1, 2)",
    "WITH x (a) AS (SELECT 1) SELECT * FROM x",
    "SELECT * FROM t FOR UPDATE",
    "SELECT nextval('s')",
    "VALUES (1), (2)",
];

const WRITES: &[&str] = &[
    "INSERT INTO t (a, b) VALUES (1, 'x;--')",
    "UPDATE t SET a = 'it''s' WHERE b IN (1, 2)",
    "DELETE FROM t USING u WHERE t.a = u.a",
    "WITH x AS (SELECT 1) DELETE FROM t",
    "CREATE TABLE t (id int)",
    "SET search_path = a",
    "BEGIN",
];

proptest! {
    #[test]
    fn no_text_makes_it_panic(dialect in dialect(), sql in any::<String>()) {
        classify(dialect, &sql);
    }

    #[test]
    fn no_pieces_make_it_panic_and_what_it_says_agrees(dialect in dialect(), sql in pieces()) {
        let kind = classify(dialect, &sql);
        if !kind.needs_primary() {
            prop_assert_eq!(kind.form(), Form::Read, "only a read may leave the primary: {}", sql);
            prop_assert_eq!(kind.session().keeps, Keeps::Nothing, "a read keeps nothing: {}", sql);
            prop_assert_eq!(kind.session().transaction, TransactionEffect::None, "a read opens nothing: {}", sql);
        }
    }

    #[test]
    fn the_start_of_a_write_is_no_read(dialect in dialect(), sql in proptest::sample::select(WRITES), cut in 0.0..1.0) {
        let end = (sql.len() as f64 * cut) as usize;
        let start = &sql[..end];
        prop_assert!(classify(dialect, start).needs_primary(), "{start}");
    }

    #[test]
    fn nothing_behind_a_write_makes_it_a_read(
        dialect in dialect(),
        write in proptest::sample::select(WRITES),
        tail in pieces(),
    ) {
        let sql = format!("{write} {tail}");
        prop_assert!(classify(dialect, &sql).needs_primary(), "{sql}");
    }

    #[test]
    fn nothing_before_a_lock_makes_it_a_read(dialect in prop_oneof![Just(Dialect::Postgres), Just(Dialect::Mysql)], middle in "[a-z0-9 ,.=()*]{0,40}") {
        let sql = format!("SELECT {middle} FROM t FOR UPDATE");
        prop_assert!(classify(dialect, &sql).needs_primary(), "{sql}");
    }

    #[test]
    fn spaces_comments_and_parentheses_before_a_statement_change_nothing(
        dialect in dialect(),
        sql in proptest::sample::select(STATEMENTS),
        before in proptest::collection::vec(proptest::sample::select(vec![" ", "\n", "\t", "-- a'\n", "/* \" ; */", "/**/"]), 0..6),
        parentheses in 0..20_usize,
        after in proptest::sample::select(vec!["", " ", ";", " ; -- a", "/* b */;"]),
    ) {
        let (open, close) = ("(".repeat(parentheses), ")".repeat(parentheses));
        let dressed = format!("{}{open}{sql}{close}{after}", before.concat());
        prop_assert_eq!(classify(dialect, &dressed), classify(dialect, sql), "{}", dressed);
    }

    #[test]
    fn case_changes_nothing(dialect in dialect(), sql in proptest::sample::select(STATEMENTS)) {
        prop_assert_eq!(classify(dialect, &sql.to_uppercase()), classify(dialect, &sql.to_lowercase()));
    }

    #[test]
    fn a_second_statement_is_always_seen(
        dialect in dialect(),
        first in proptest::sample::select(STATEMENTS),
        second in proptest::sample::select(WRITES),
    ) {
        let sql = format!("{first}; {second}");
        let kind = classify(dialect, &sql);
        prop_assert!(kind.needs_primary(), "{sql}");
        prop_assert_eq!(kind.form(), Form::Batch, "{}", sql);
    }
}

#[test]
fn huge_and_deep_texts_are_read() {
    for dialect in [Dialect::Postgres, Dialect::Mysql, Dialect::Sqlite] {
        let literal = format!("SELECT '{}'", "x".repeat(10_000_000));
        assert!(
            !classify(dialect, &literal).needs_primary(),
            "a literal of 10 MB"
        );
        let list = format!(
            "SELECT * FROM t WHERE a IN ({})",
            vec!["12345"; 500_000].join(",")
        );
        assert!(
            !classify(dialect, &list).needs_primary(),
            "half a million values"
        );
        let dollars = format!("SELECT $a${}$a$", "$aa".repeat(1_000_000));
        classify(dialect, &dollars);
        let deep = format!("{}SELECT 1{}", "(".repeat(100), ")".repeat(100));
        assert!(!classify(dialect, &deep).needs_primary(), "100 parentheses");
        let too_deep = format!("{}SELECT 1{}", "(".repeat(1_000_000), ")".repeat(1_000_000));
        assert_eq!(
            *classify(dialect, &too_deep).need(),
            Need::Unknown,
            "nobody nests so deep"
        );
    }
}
