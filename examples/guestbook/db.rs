//! The guestbook in the database: what Diesel and diesel-routed are asked to do.

use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sqlite::SqliteConnection;
use diesel_routed::{
    Cluster, ClusterConfig, Consistency, NodeStatus, ReplicatedConnection, Role, Route,
    RoutedConnection, RoutedConnectionManager, RoutedPool,
};

use crate::Outcome;
use crate::replicas::Replicas;

/// How many entries the page shows.
const SHOWN: i64 = 5;

diesel::table! {
    guestbook (id) {
        id -> BigInt,
        signed_at -> BigInt,
        name -> Text,
        message -> Text,
    }
}

#[derive(Debug, Clone, Queryable, Insertable)]
#[diesel(table_name = guestbook)]
pub struct Entry {
    /// Drawn at random, so that every database makes the same table.
    pub id: i64,
    /// In milliseconds since 1970.
    pub signed_at: i64,
    pub name: String,
    pub message: String,
}

/// A statement that was run, and which node answered it.
#[derive(Debug, Clone)]
pub struct Step {
    pub statement: &'static str,
    pub route: Route,
}

/// What one visitor sees.
pub struct Reading {
    pub total: i64,
    pub newest: Vec<Entry>,
    pub steps: Vec<Step>,
}

impl Reading {
    /// Tells whether an entry ought to be among the newest, but is not.
    pub fn misses(&self, entry: &Entry) -> bool {
        let full = i64::try_from(self.newest.len()) == Ok(SHOWN);
        let newer = |shown: &Entry| shown.signed_at > entry.signed_at;
        let pushed_out = full && self.newest.iter().all(newer);
        !pushed_out && self.newest.iter().all(|shown| shown.id != entry.id)
    }
}

/// The guestbook on any of the three databases.
pub trait Store: Send + Sync {
    fn create_table(&self) -> Outcome<()>;
    fn sign(&self, entry: &Entry) -> Outcome<Vec<Step>>;
    fn read(&self, consistency: Consistency) -> Outcome<Reading>;
    fn nodes(&self) -> Vec<NodeStatus>;
    fn rotate(&self, replica: &str, turn: Turn) -> Outcome<()>;
}

/// What becomes of a replica.
#[derive(Debug, Clone, Copy)]
pub enum Turn {
    /// It gets no more reads.
    Out,
    /// It gets reads again.
    In,
}

struct Routed<C: ReplicatedConnection> {
    pool: RoutedPool<C>,
    cluster: Cluster<C>,
}

/// Implements [`Store`] for one connection type: the same code three times, because queries that
/// are generic over the database need a page of bounds.
macro_rules! store {
    ($connection:ty, $table_options:literal) => {
        impl Store for Routed<$connection> {
            fn create_table(&self) -> Outcome<()> {
                let sql = concat!(
                    "CREATE TABLE IF NOT EXISTS guestbook (id BIGINT PRIMARY KEY, signed_at ",
                    "BIGINT NOT NULL, name VARCHAR(40) NOT NULL, message VARCHAR(500) NOT NULL)",
                    $table_options
                );
                Ok(self.pool.get()?.batch_execute(sql)?)
            }

            fn sign(&self, entry: &Entry) -> Outcome<Vec<Step>> {
                let mut conn = self.pool.get()?;
                diesel::insert_into(guestbook::table)
                    .values(entry)
                    .execute(&mut conn)?;
                Ok(step("insert entry", &conn).into_iter().collect())
            }

            fn read(&self, consistency: Consistency) -> Outcome<Reading> {
                let mut conn = self.pool.get()?;
                // the whole block reads from one node
                let reading = conn.distributed_with(consistency, |conn| {
                    let newest = guestbook::table
                        .order((guestbook::signed_at.desc(), guestbook::id.desc()))
                        .limit(SHOWN)
                        .load(conn)?;
                    let mut steps = Vec::from_iter(step("select entries", conn));
                    let total = guestbook::table.count().get_result(conn)?;
                    steps.extend(step("select count", conn));
                    QueryResult::Ok(Reading {
                        total,
                        newest,
                        steps,
                    })
                });
                Ok(reading?)
            }

            fn nodes(&self) -> Vec<NodeStatus> {
                self.cluster.status().nodes
            }

            fn rotate(&self, replica: &str, turn: Turn) -> Outcome<()> {
                Ok(match turn {
                    Turn::Out => self.cluster.drain(replica),
                    Turn::In => self.cluster.resume(replica),
                }?)
            }
        }
    };
}

store!(SqliteConnection, "");
#[cfg(feature = "postgres")]
store!(diesel::pg::PgConnection, "");
#[cfg(feature = "mysql")]
store!(diesel::mysql::MysqlConnection, " CHARACTER SET utf8mb4");

fn step<C: ReplicatedConnection>(
    statement: &'static str,
    conn: &RoutedConnection<C>,
) -> Option<Step> {
    let route = conn.last_route()?;
    Some(Step { statement, route })
}

/// The opened guestbook, and how to speak of it.
pub struct Database {
    pub name: &'static str,
    pub store: Box<dyn Store>,
    /// Replication, where it is this example's own.
    pub replicas: Option<Replicas>,
}

/// Opens the database that `DATABASE_URL` names, or else files of its own.
pub fn open() -> Outcome<Database> {
    let url = std::env::var("DATABASE_URL").unwrap_or_default();
    if url.is_empty() {
        return open_files();
    }
    let (name, store) = match url.split_once("://").map(|(scheme, _)| scheme) {
        Some("postgres" | "postgresql") => ("PostgreSQL", open_postgres()?),
        Some("mysql" | "mariadb") => ("MySQL or MariaDB", open_mysql()?),
        _ => ("SQLite", connect(ClusterConfig::from_env()?, sqlite_setup)?),
    };
    let replicas = None;
    Ok(Database {
        name,
        store,
        replicas,
    })
}

fn open_files() -> Outcome<Database> {
    let replicas = Replicas::start(2)?;
    let config = replicas.nodes().fold(
        ClusterConfig::new(replicas.primary()),
        ClusterConfig::replica,
    );
    // long enough for the longest delay on the page; see the README's table of settings
    let config = config.sticky_for(Duration::from_secs(12));
    Ok(Database {
        name: "SQLite",
        store: connect(config, sqlite_setup)?,
        replicas: Some(replicas),
    })
}

/// Waits for a writer instead of failing at once.
fn sqlite_setup(conn: &mut SqliteConnection, _: Role) -> QueryResult<()> {
    conn.batch_execute("PRAGMA busy_timeout = 2000")
}

#[cfg(feature = "postgres")]
fn open_postgres() -> Outcome<Box<dyn Store>> {
    connect::<diesel::pg::PgConnection>(ClusterConfig::from_env()?, |_, _| Ok(()))
}

#[cfg(not(feature = "postgres"))]
fn open_postgres() -> Outcome<Box<dyn Store>> {
    Err(missing("postgres"))
}

#[cfg(feature = "mysql")]
fn open_mysql() -> Outcome<Box<dyn Store>> {
    connect::<diesel::mysql::MysqlConnection>(ClusterConfig::from_env()?, |_, _| Ok(()))
}

#[cfg(not(feature = "mysql"))]
fn open_mysql() -> Outcome<Box<dyn Store>> {
    Err(missing("mysql"))
}

#[cfg(not(all(feature = "postgres", feature = "mysql")))]
fn missing(feature: &str) -> Box<dyn std::error::Error + Send + Sync> {
    format!(
        "DATABASE_URL names a database that this build does not speak to; run\n  \
         cargo run --example guestbook --features {feature}"
    )
    .into()
}

fn connect<C: ReplicatedConnection>(
    config: ClusterConfig,
    setup: fn(&mut C, Role) -> QueryResult<()>,
) -> Outcome<Box<dyn Store>>
where
    Routed<C>: Store,
{
    let open = || -> Outcome<Routed<C>> {
        let manager = RoutedConnectionManager::connect(config.clone())?.with_setup(setup);
        let cluster = manager.cluster().clone();
        let pool = RoutedPool::new(manager)?;
        Ok(Routed { pool, cluster })
    };
    // another cluster makes the table, so that the counts on the page start at 0
    let maker = open()?;
    maker.create_table()?;
    wait_for_replicas(&maker)?;
    Ok(Box::new(open()?))
}

/// Returns when each replica has the table; one that is down is not waited for long.
fn wait_for_replicas(store: &dyn Store) -> Outcome<()> {
    let deadline = Instant::now() + Duration::from_secs(5);
    let mut have_it = HashSet::new();
    loop {
        let read = store.read(Consistency::Eventual);
        let steps = read.as_ref().map_or(&[][..], |reading| &reading.steps);
        have_it.extend(steps.iter().map(|step| step.route.node.to_string()));
        let has_it = |node: &NodeStatus| node.role == Role::Primary || have_it.contains(&node.name);
        if store.nodes().iter().all(has_it) {
            return Ok(());
        }
        if Instant::now() > deadline {
            return read.map(drop);
        }
        thread::sleep(Duration::from_millis(10));
    }
}
