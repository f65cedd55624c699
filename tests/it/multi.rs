//! An enum of routed connections to three databases, as `diesel::MultiConnection` makes it.

use diesel::mysql::MysqlConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::result::Error;
use diesel::sqlite::SqliteConnection;
use diesel_routed::{ClusterConfig, RoutedConnection, RoutedConnectionManager};

use crate::kit::{self, node_name, note};

// the derive takes names, no types with parameters
type RoutedPg = RoutedConnection<PgConnection>;
type RoutedMysql = RoutedConnection<MysqlConnection>;
type RoutedSqlite = RoutedConnection<SqliteConnection>;

#[derive(diesel::MultiConnection)]
enum AnyRouted {
    Pg(RoutedPg),
    Mysql(RoutedMysql),
    Sqlite(RoutedSqlite),
}

impl AnyRouted {
    /// The block has to be entered on the variant: what runs in it is known by then.
    fn reads_from(&mut self) -> String {
        match self {
            Self::Pg(conn) => conn.distributed(kit::postgres::who),
            Self::Mysql(conn) => conn.distributed(kit::mariadb::who),
            Self::Sqlite(conn) => conn.distributed(kit::sqlite::who),
        }
    }
}

fn bodies(conn: &mut AnyRouted) -> QueryResult<Vec<String>> {
    note::table.select(note::body).order(note::id).load(conn)
}

fn insert(conn: &mut AnyRouted, body: &str) -> QueryResult<usize> {
    diesel::insert_into(note::table)
        .values(note::body.eq(body))
        .execute(conn)
}

/// What holds on each variant.
fn check(conn: &mut AnyRouted) -> QueryResult<()> {
    let who = |conn: &mut AnyRouted| {
        node_name::table
            .select(node_name::name)
            .first::<String>(conn)
    };
    assert_eq!(who(conn)?, "n0");
    assert_eq!(conn.reads_from(), "n1");
    assert_eq!(insert(conn, "a")?, 1);
    conn.transaction(|conn| {
        insert(conn, "b")?;
        let inner: QueryResult<()> = conn.transaction(|conn| {
            insert(conn, "c")?;
            Err(Error::RollbackTransaction)
        });
        assert!(inner.is_err());
        QueryResult::Ok(())
    })?;
    let rolled_back: QueryResult<()> = conn.transaction(|conn| {
        insert(conn, "d")?;
        Err(Error::RollbackTransaction)
    });
    assert!(rolled_back.is_err());
    assert_eq!(bodies(conn)?, ["a", "b"]);
    let filtered = note::table
        .filter(note::body.eq("b").or(note::id.lt(0)))
        .count();
    assert_eq!(filtered.get_result::<i64>(conn)?, 1);
    assert_eq!(
        diesel::update(note::table.filter(note::body.eq("b")))
            .set(note::body.eq("e"))
            .execute(conn)?,
        1
    );
    assert_eq!(
        diesel::delete(note::table.filter(note::body.eq("a"))).execute(conn)?,
        1
    );
    assert_eq!(bodies(conn)?, ["e"]);
    assert_eq!(conn.reads_from(), "n0", "it remembers what it wrote");
    Ok(())
}

fn cluster<C: diesel_routed::ReplicatedConnection>(config: ClusterConfig) -> RoutedConnection<C> {
    let manager = RoutedConnectionManager::<C>::new(config).unwrap();
    manager.cluster().connection()
}

#[test]
fn one_enum_serves_three_databases() {
    let (pg, mysql, sqlite) = (
        kit::postgres::cluster(1),
        kit::mariadb::cluster(1),
        kit::sqlite::cluster(1),
    );
    check(&mut AnyRouted::Pg(cluster(kit::config(&pg)))).unwrap();
    check(&mut AnyRouted::Mysql(cluster(kit::config(&mysql)))).unwrap();
    check(&mut AnyRouted::Sqlite(cluster(kit::config(&sqlite)))).unwrap();
}

#[test]
fn the_enum_is_established_by_the_scheme_of_its_urls() {
    let (pg, mysql, sqlite) = (
        kit::postgres::cluster(1),
        kit::mariadb::cluster(1),
        kit::sqlite::cluster(1),
    );
    let variant = |cluster: &crate::support::Cluster| {
        let urls = format!("{} {}", cluster.url(0), cluster.url(1));
        let mut conn = AnyRouted::establish(&urls).unwrap();
        let variant = match &conn {
            AnyRouted::Pg(_) => "pg",
            AnyRouted::Mysql(_) => "mysql",
            AnyRouted::Sqlite(_) => "sqlite",
        };
        (variant, conn.reads_from())
    };
    assert_eq!(variant(&pg), ("pg", "n1".to_owned()));
    assert_eq!(variant(&mysql), ("mysql", "n1".to_owned()));
    assert_eq!(variant(&sqlite), ("sqlite", "n1".to_owned()));
}
