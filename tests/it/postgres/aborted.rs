//! A transaction that PostgreSQL has aborted behaves as with plain Diesel.

use diesel::prelude::*;
use diesel::result::Error;

use crate::kit::postgres::*;

/// Runs the same program on the routed and on the plain connection and compares all it says.
#[test]
fn an_aborted_transaction_behaves_as_with_plain_diesel() {
    fn program<C>(conn: &mut C) -> Vec<String>
    where
        C: diesel::connection::LoadConnection<Backend = diesel::pg::Pg>,
    {
        let say = |result: &QueryResult<usize>| match result {
            Ok(_) => "ok".to_owned(),
            Err(error) => format!("{error:?}"),
        };
        let mut said = vec![];
        let outcome = conn.transaction(|conn| {
            for text in [
                "INSERT INTO note (body) VALUES ('before')",
                "SELECT nonsense",
                "INSERT INTO note (body) VALUES ('after')",
                "SELECT 1",
            ] {
                said.push(say(&diesel::sql_query(text).execute(conn)));
            }
            Ok::<usize, Error>(0)
        });
        said.push(say(&outcome));
        let nested = conn.transaction(|conn| {
            let inner = conn.transaction(|conn| diesel::sql_query("SELECT 1/0").execute(conn));
            said.push(say(&inner));
            diesel::sql_query("INSERT INTO note (body) VALUES ('kept')").execute(conn)
        });
        said.push(say(&nested));
        said.push(say(&diesel::sql_query("SELECT 1").execute(conn)));
        said
    }
    let db = db(1);
    let routed = program(&mut *db.pool.get().unwrap());
    let plain = program(&mut Plain::establish(&db.cluster.url(0)).unwrap());
    assert_eq!(routed, plain);
    assert_eq!(
        db.cluster.sql(0, "SELECT body FROM note"),
        "kept\nkept",
        "the aborted parts are gone on both"
    );
}
