//! Tables of statements and what the scanner says of them.
mod effects;
mod makara;
mod needs;
mod text;

use diesel_routed::statement::Dialect::{self, Mysql, Postgres, Sqlite};
use diesel_routed::statement::{
    Form, Keeps, Need, Purity, Rules, TransactionEffect, UnknownFunctions, classify,
};

const ALL: &[Dialect] = &[Postgres, Mysql, Sqlite];

fn reads(dialects: &[Dialect], statements: &[&str]) {
    for &dialect in dialects {
        for sql in statements {
            let kind = classify(dialect, sql);
            assert!(
                !kind.needs_primary(),
                "{dialect:?}: a read, not {:?}: {sql}",
                kind.need()
            );
        }
    }
}

fn primary(dialects: &[Dialect], statements: &[&str]) {
    for &dialect in dialects {
        for sql in statements {
            assert!(
                classify(dialect, sql).needs_primary(),
                "{dialect:?}: needs the primary: {sql}"
            );
        }
    }
}

fn need(dialect: Dialect, expected: Need, statements: &[&str]) {
    for sql in statements {
        assert_eq!(
            *classify(dialect, sql).need(),
            expected,
            "{dialect:?}: {sql}"
        );
    }
}

fn form(dialect: Dialect, expected: Form, statements: &[&str]) {
    for sql in statements {
        assert_eq!(
            classify(dialect, sql).form(),
            expected,
            "{dialect:?}: {sql}"
        );
    }
}

fn purity(dialect: Dialect, expected: Purity, statements: &[&str]) {
    for sql in statements {
        assert_eq!(
            classify(dialect, sql).purity(),
            expected,
            "{dialect:?}: {sql}"
        );
    }
}

fn keeps(dialect: Dialect, expected: Keeps, statements: &[&str]) {
    for sql in statements {
        assert_eq!(
            classify(dialect, sql).session().keeps,
            expected,
            "{dialect:?}: {sql}"
        );
    }
}

fn transaction(dialect: Dialect, expected: TransactionEffect, statements: &[&str]) {
    for sql in statements {
        assert_eq!(
            classify(dialect, sql).session().transaction,
            expected,
            "{dialect:?}: {sql}"
        );
    }
}
