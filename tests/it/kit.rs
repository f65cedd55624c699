//! What the tests share: a cluster with tables, a routed pool on it, and who answered.

use diesel_routed::{ClusterConfig, NodeConfig};

use crate::support::Cluster;

#[path = "kit_shapes.rs"]
pub mod shapes;

diesel::table! {
    node_name (name) {
        name -> Text,
    }
}

diesel::table! {
    note (id) {
        id -> Integer,
        body -> Text,
    }
}

diesel::allow_tables_to_appear_in_same_query!(node_name, note);

/// A configuration for the cluster whose nodes are called as they call themselves.
pub fn config(cluster: &Cluster) -> ClusterConfig {
    let node = |place: usize| NodeConfig::new(cluster.url(place)).name(&format!("n{place}"));
    (1..cluster.len()).fold(ClusterConfig::new(node(0)), |config, place| {
        config.replica(node(place))
    })
}

/// Defines `Conn`, `Pool`, `cluster(replicas)` and `db(replicas)` for one database.
macro_rules! backend {
    ($name:ident, $feature:literal, $connection:ty, $start:path, $id:literal, $patience:literal) => {
        #[cfg(feature = $feature)]
        #[allow(dead_code)] // not every database takes part in every test
        pub mod $name {
            pub use super::{node_name, note};
            use crate::support::{Cluster, wait_until};
            use diesel::prelude::*;
            use diesel_routed::{
                ClusterConfig, NodeState, NodeStatus, Reason, RoutedConnection,
                RoutedConnectionManager, RoutedPool,
            };
            use std::time::Duration;

            pub type Plain = $connection;
            pub type Conn = RoutedConnection<Plain>;
            pub type Pool = RoutedPool<Plain>;

            /// The database, as this module is called.
            pub const NAME: &str = stringify!($name);

            /// The type of a primary key that counts by itself.
            pub const ID: &str = $id;

            /// A cluster and a routed pool on it. The pool goes first.
            pub struct Db {
                pub pool: Pool,
                pub cluster: Cluster,
            }

            /// Starts a cluster that holds the table `note`, empty.
            pub fn cluster(replicas: usize) -> Cluster {
                let cluster = $start(replicas);
                let create = format!("CREATE TABLE note (id {ID}, body VARCHAR(200) NOT NULL)");
                Plain::establish(&cluster.url(0))
                    .and_then(|mut conn| {
                        use diesel::connection::SimpleConnection;
                        conn.batch_execute(&create).expect("the table is new");
                        Ok(())
                    })
                    .expect("the primary takes connections");
                cluster.wait_replicated();
                cluster
            }

            pub fn db(replicas: usize) -> Db {
                db_with(replicas, |config| config)
            }

            pub fn db_with(
                replicas: usize,
                change: impl FnOnce(ClusterConfig) -> ClusterConfig,
            ) -> Db {
                let cluster = cluster(replicas);
                let pool = pool(change(super::config(&cluster)));
                Db { pool, cluster }
            }

            pub fn pool(config: ClusterConfig) -> Pool {
                let manager = RoutedConnectionManager::new(config)
                    .expect("a right configuration")
                    .with_setup(|conn: &mut Plain, _| {
                        use diesel::connection::SimpleConnection;
                        match $patience {
                            "" => Ok(()),
                            sql => conn.batch_execute(sql),
                        }
                    });
                RoutedPool::new(manager).expect("handles are made without I/O")
            }

            /// The name of the node that answers a read now.
            pub fn who(conn: &mut Conn) -> String {
                node_name::table
                    .select(node_name::name)
                    .first(conn)
                    .expect("every node has a name")
            }

            pub fn write(conn: &mut Conn, body: &str) {
                diesel::insert_into(note::table)
                    .values(note::body.eq(body))
                    .execute(conn)
                    .expect("the primary takes a note");
            }

            /// The bodies of all notes, read where the connection reads.
            pub fn bodies(conn: &mut Conn) -> Vec<String> {
                note::table
                    .select(note::body)
                    .order(note::id)
                    .load(conn)
                    .expect("notes can be read")
            }

            /// However slow the machine is, a paused replica is fresh enough.
            pub fn patient(config: ClusterConfig) -> ClusterConfig {
                config
                    .max_lag(Duration::from_secs(600))
                    .sticky_for(Duration::from_secs(700))
            }

            /// Has the pool look at its nodes until it uses them all: a replica counts only once
            /// it is seen to have what the primary had at the first look.
            pub fn warm(pool: &Pool) {
                let conn = pool.get().expect("a handle is free");
                let is_up = |node: &NodeStatus| node.state == NodeState::Up;
                wait_until("all nodes are up", Duration::from_secs(20), || {
                    conn.cluster().check().nodes.iter().all(is_up)
                });
            }

            /// A cluster whose replicas apply nothing from now on: only the primary has what is
            /// written.
            pub fn paused_db(replicas: usize) -> Db {
                paused_db_with(replicas, |config| config)
            }

            pub fn paused_db_with(
                replicas: usize,
                change: impl FnOnce(ClusterConfig) -> ClusterConfig,
            ) -> Db {
                let db = db_with(replicas, |config| change(patient(config)));
                pause(&db);
                db
            }

            /// Has the replicas apply nothing from now on.
            pub fn pause(db: &Db) {
                warm(&db.pool);
                for replica in 1..db.cluster.len() {
                    db.cluster.pause_replication(replica);
                }
            }

            /// Why the last statement went where it went.
            pub fn reason(conn: &Conn) -> Reason {
                conn.last_route().expect("a statement has run").reason
            }

            /// Runs one statement of raw SQL.
            pub fn sql(conn: &mut Conn, sql: &str) -> QueryResult<usize> {
                diesel::sql_query(sql).execute(conn)
            }

            /// Whether the server tells after a failed write that it left nothing.
            pub fn proves_failures() -> bool {
                // MySQL names no last write, as MariaDB's @@last_gtid does
                NAME != "mysql"
            }

            /// Whether a statement can be prepared that begins a transaction or makes a routine.
            pub fn prepares_everything() -> bool {
                NAME != "mysql"
            }

            /// [`sql`] for what not every server prepares.
            pub fn unprepared(conn: &mut Conn, text: &str) -> QueryResult<()> {
                use diesel::connection::SimpleConnection;
                if prepares_everything() {
                    sql(conn, text).map(drop)
                } else {
                    conn.batch_execute(text)
                }
            }

            /// Where a block of a handle reads now.
            pub fn block_reads_from(conn: &mut Conn) -> String {
                conn.distributed(who)
            }

            /// The name of the node that answers, or why none does.
            pub fn try_who(conn: &mut Conn) -> QueryResult<String> {
                node_name::table.select(node_name::name).first(conn)
            }

            pub fn try_write(conn: &mut Conn, body: &str) -> QueryResult<usize> {
                diesel::insert_into(note::table)
                    .values(note::body.eq(body))
                    .execute(conn)
            }

            /// Runs SQL that returns nothing.
            pub fn batch(conn: &mut Conn, sql: &str) {
                use diesel::connection::SimpleConnection;
                conn.batch_execute(sql)
                    .unwrap_or_else(|error| panic!("{sql}: {error}"));
            }
        }
    };
}

backend!(
    postgres,
    "postgres",
    diesel::pg::PgConnection,
    Cluster::postgres,
    "SERIAL PRIMARY KEY",
    ""
);
backend!(
    mariadb,
    "mysql",
    diesel::mysql::MysqlConnection,
    Cluster::mariadb,
    "INTEGER PRIMARY KEY AUTO_INCREMENT",
    ""
);
backend!(
    mysql,
    "mysql",
    diesel::mysql::MysqlConnection,
    Cluster::mysql,
    "INTEGER PRIMARY KEY AUTO_INCREMENT",
    ""
);
backend!(
    sqlite,
    "sqlite",
    diesel::sqlite::SqliteConnection,
    Cluster::sqlite,
    "INTEGER PRIMARY KEY AUTOINCREMENT",
    // one writer at a time: the others wait
    "PRAGMA busy_timeout = 20000"
);
