//! What Diesel offers on SQLite alone.

use diesel::prelude::*;
use diesel::result::Error;
use diesel::sqlite::SqliteConnection;

use super::backend::*;
use super::reads::paused;

#[diesel::declare_sql_function]
extern "SQL" {
    fn shout(said: diesel::sql_types::Text) -> diesel::sql_types::Text;
}

#[test]
fn transactions_that_lock_at_once_run_on_the_primary() {
    let db = paused();
    let mut conn = db.pool.get().unwrap();
    let mut other = SqliteConnection::establish(&db.cluster.url(0)).unwrap();
    let locked = |conn: &mut Conn, other: &mut SqliteConnection| {
        assert_eq!(who(conn), "n0");
        let written = diesel::insert_into(note::table)
            .values(note::body.eq("other"))
            .execute(other);
        let error = written.unwrap_err().to_string();
        assert!(error.contains("locked"), "nobody else writes: {error}");
        QueryResult::Ok(())
    };
    conn.distributed(|conn| conn.immediate_transaction(|conn| locked(conn, &mut other)))
        .unwrap();
    conn.distributed(|conn| conn.exclusive_transaction(|conn| locked(conn, &mut other)))
        .unwrap();
    let rolled_back: QueryResult<()> = conn.immediate_transaction(|conn| {
        write(conn, "never");
        Err(Error::RollbackTransaction)
    });
    assert!(rolled_back.is_err());
    assert_eq!(bodies(&mut conn), ["old"]);
    let nested = conn.transaction(|conn| conn.immediate_transaction(|_| Ok(())));
    assert!(
        matches!(nested, Err::<(), _>(Error::AlreadyInTransaction)),
        "{nested:?}"
    );
    let nested =
        conn.exclusive_transaction(|conn| conn.transaction(|conn| QueryResult::Ok(who(conn))));
    assert_eq!(nested.unwrap(), "n0", "savepoints work inside");
}

#[test]
fn a_function_is_registered_on_the_primary_connection_which_is_closed_afterwards() {
    let db = paused();
    let mut conn = db.pool.get().unwrap();
    let primary: &mut SqliteConnection = conn.primary_connection().unwrap();
    shout_utils::register_impl(primary, |said: String| said.to_uppercase()).unwrap();
    let loud = conn.distributed(|conn| note::table.select(shout(note::body)).load::<String>(conn));
    assert_eq!(
        loud.unwrap(),
        ["OLD"],
        "the handle stays where the function is"
    );
    let cluster = conn.cluster().clone();
    drop(conn);
    assert_eq!(
        cluster.status().nodes[0].open,
        0,
        "the connection is closed"
    );
    let mut conn = db.pool.get().unwrap();
    let gone = note::table
        .select(shout(note::body))
        .load::<String>(&mut conn);
    assert!(gone.unwrap_err().to_string().contains("no such function"));
}

#[test]
fn a_function_registered_by_with_setup_is_on_every_node() {
    let db = db(1);
    // unless somebody vouches for it, a function may have written on the primary
    let config = crate::kit::config(&db.cluster).replica_functions(["shout"]);
    let manager = diesel_routed::RoutedConnectionManager::new(config).unwrap();
    let manager = manager.with_setup(|conn: &mut SqliteConnection, _| {
        shout_utils::register_impl(conn, |said: String| said.to_uppercase())
    });
    let pool = Pool::new(manager).unwrap();
    let mut conn = pool.get().unwrap();
    let name = || node_name::table.select(shout(node_name::name));
    assert_eq!(name().first::<String>(&mut conn).unwrap(), "N0");
    assert_eq!(
        conn.distributed(|conn| name().first::<String>(conn))
            .unwrap(),
        "N1"
    );
}
