//! Every statement that needs the primary, first thing in a block: it runs there, by the data, and so do the
//! reads of the block that follow.

use diesel::prelude::*;
use diesel_routed::statement::Keeps;
use diesel_routed::{Cluster, Context, Role, RoutedConnectionManager};

use super::backend::*;
use super::reads::Named;

type PooledConn = diesel::r2d2::PooledConnection<RoutedConnectionManager<Plain>>;

/// Whether a statement makes later blocks of its context wait for the replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marks {
    Write,
    Nothing,
}

/// A statement that has to run on the primary.
pub(super) struct Write {
    name: &'static str,
    /// Why, as the route says.
    reason: &'static str,
    marks: Marks,
    /// What it leaves in its session.
    keeps: Keeps,
    /// Whether its connection is closed when the handle goes back.
    closed: u32,
    run: fn(&mut Conn),
    /// Where it ran, as the data say.
    place: fn(&mut Conn, &Db) -> String,
}

pub(super) fn row(
    name: &'static str,
    reason: &'static str,
    marks: Marks,
    keeps: Keeps,
    run: fn(&mut Conn),
    place: fn(&mut Conn, &Db) -> String,
) -> Write {
    Write {
        name,
        reason,
        marks,
        keeps,
        closed: match keeps {
            Keeps::State => 1,
            Keeps::Nothing => 0,
        },
        run,
        place,
    }
}

impl Write {
    /// What a routine has left in the session nobody can see, so that its connection is closed.
    #[allow(dead_code)] // SQLite has no routines
    pub(super) fn by_routine(self) -> Self {
        Self { closed: 1, ..self }
    }
}

/// Runs SQL that returns nothing, by `sql_query`.
pub(super) fn run(conn: &mut Conn, sql: &str) {
    let done = diesel::sql_query(sql).execute(conn);
    done.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// The name that a query returns.
pub(super) fn ask(conn: &mut Conn, sql: &str) -> String {
    let named = diesel::sql_query(sql).get_result::<Named>(conn);
    named.unwrap_or_else(|error| panic!("{sql}: {error}")).name
}

/// Asserts that the query itself was answered by the primary, which it names.
pub(super) fn on_primary(conn: &mut Conn, sql: &str) {
    assert_eq!(ask(conn, sql), "n0", "{sql}");
}

/// The nodes on which a query succeeds and counts something.
pub(super) fn nodes_with(db: &Db, count: &str) -> String {
    let counts = |node: &usize| {
        db.cluster
            .try_sql(*node, count)
            .is_ok_and(|count| count != "0")
    };
    let nodes = (0..db.cluster.len()).filter(counts);
    let names: Vec<String> = nodes.map(|node| format!("n{node}")).collect();
    names.join(" and ")
}

/// The nodes that hold a note.
pub(super) fn holds(db: &Db, body: &str) -> String {
    nodes_with(
        db,
        &format!("SELECT count(*) FROM note WHERE body = '{body}'"),
    )
}

/// The nodes that hold a note no more.
fn lacks(db: &Db, body: &str) -> String {
    nodes_with(
        db,
        &format!("SELECT 1 - count(*) FROM note WHERE body = '{body}'"),
    )
}

pub(super) fn has_table(db: &Db, name: &str) -> String {
    nodes_with(db, &format!("SELECT 1 + count(*) FROM {name}"))
}

fn lacks_table(db: &Db, name: &str) -> String {
    let there = has_table(db, name);
    if there == "n1" {
        "n0".to_owned()
    } else {
        format!("not gone from {there}")
    }
}

/// The node that has answered the statement itself; it returns nothing that could tell.
pub(super) fn connected(conn: &mut Conn, _: &Db) -> String {
    ask(conn, "SELECT name FROM node_name")
}

pub(super) const W: Marks = Marks::Write;
pub(super) const N: Keeps = Keeps::Nothing;

#[rustfmt::skip]
fn common() -> Vec<Write> {
    use note::{body, id, table};
    vec![
        row("insert", "write", W, N, |c| write(c, "a1"), |_, db| holds(db, "a1")),
        row("insert of many", "write", W, N, |c| {
            diesel::insert_into(table).values(vec![body.eq("a2"), body.eq("a3")]).execute(c).unwrap();
        }, |_, db| holds(db, "a3")),
        row("insert by sql_query", "write", W, N, |c| {
            let insert = diesel::sql_query("INSERT INTO note (body) VALUES ('a4')");
            assert_eq!(insert.execute(c), Ok(1));
        }, |_, db| holds(db, "a4")),
        row("insert from select", "write", W, N, |c| {
            let made = diesel::dsl::sql::<diesel::sql_types::Text>("'a6'");
            let from = table.filter(body.eq("old")).select(made);
            from.insert_into(table).into_columns(body).execute(c).unwrap();
        }, |_, db| holds(db, "a6")),
        row("insert after comments", "write", W, N, |c| run(c, "/* SELECT */ -- SELECT\n INSERT INTO note (body) VALUES ('a7')"), |_, db| holds(db, "a7")),
        row("replace or upsert", "write", W, N, |c| run(c, super::UPSERT), |_, db| holds(db, "upserted")),
        row("update", "write", W, N, |c| {
            assert_eq!(diesel::update(table.filter(body.eq("to update"))).set(body.eq("updated")).execute(c), Ok(1));
        }, |_, db| holds(db, "updated")),
        row("update of nothing", "write", W, N, |c| {
            assert_eq!(diesel::update(table.filter(id.eq(-1))).set(body.eq("nothing")).execute(c), Ok(0));
        }, connected),
        row("boxed delete", "write", W, N, |c| {
            assert_eq!(diesel::delete(table.filter(body.eq("to delete"))).into_boxed().execute(c), Ok(1));
        }, |_, db| lacks(db, "to delete")),
        row("insert by batch_execute", "write", W, N, |c| batch(c, "INSERT INTO note (body) VALUES ('b1')"), |_, db| holds(db, "b1")),
        row("several statements", "write", W, N, |c| batch(c, "SELECT 1; INSERT INTO note (body) VALUES ('b2'); DELETE FROM note WHERE body = 'none';"), |_, db| holds(db, "b2")),
        row("a transaction as text", "write", W, N, |c| batch(c, "BEGIN; INSERT INTO note (body) VALUES ('b3'); COMMIT"), |_, db| holds(db, "b3")),
        row("create table", "write", W, N, |c| run(c, "CREATE TABLE created (a INTEGER)"), |_, db| has_table(db, "created")),
        row("create table from select", "write", W, N, |c| run(c, "CREATE TABLE copied AS SELECT * FROM note"), |_, db| has_table(db, "copied")),
        row("create index", "write", W, N, |c| batch(c, "CREATE INDEX note_body ON note (body)"), connected),
        row("alter table", "write", W, N, |c| run(c, "ALTER TABLE to_alter ADD COLUMN b INTEGER"), |_, db| nodes_with(db, "SELECT 1 + count(b) FROM to_alter")),
        row("drop table", "write", W, N, |c| run(c, "DROP TABLE to_drop"), |_, db| lacks_table(db, "to_drop")),
        row("create view", "write", W, N, |c| run(c, "CREATE VIEW seen AS SELECT * FROM node_name"), |_, db| has_table(db, "seen")),
        row("temporary table", "write", W, Keeps::State, |c| run(c, "CREATE TEMPORARY TABLE passing (a INTEGER)"), |c, _| {
            run(c, "INSERT INTO passing VALUES (1)");
            ask(c, "SELECT name FROM node_name, passing")
        }),
        row("temporary table that hides another", "write", W, Keeps::State, |c| batch(c, "CREATE TEMPORARY TABLE note (a INTEGER); INSERT INTO note VALUES (1);"), |c, _| {
            ask(c, "SELECT name FROM node_name, note WHERE a = 1")
        }),
    ]
}

/// What the statements need lies on both nodes, and from then on nothing more arrives on the replica.
pub(super) fn prepared() -> Db {
    let db = db_with(1, patient);
    let mut conn = db.pool.get().expect("handles are free");
    for body in ["old", "to update", "to delete"] {
        write(&mut conn, body);
    }
    batch(&mut conn, "CREATE TABLE to_drop (a INTEGER)");
    batch(&mut conn, "CREATE TABLE to_alter (a INTEGER)");
    for statement in super::PREPARE {
        batch(&mut conn, statement);
    }
    drop(conn);
    db.cluster.wait_replicated();
    pause(&db);
    db
}

/// Runs each in a block, on a handle and in a context of its own.
pub(super) fn check(writes: &[Write]) {
    let db = prepared();
    for write in writes {
        let mut conn = db.pool.get().expect("handles are free");
        Context::new().run(|| {
            conn.distributed(|conn| in_block(conn, write, &db));
            after_block(&mut conn, &db, write);
        });
        give_back(conn, write);
    }
}

fn in_block(conn: &mut Conn, write: &Write, db: &Db) {
    let name = write.name;
    (write.run)(conn);
    let route = conn.last_route().expect("a statement ran");
    let told = (route.role, route.reason.to_string());
    assert_eq!(
        told,
        (Role::Primary, write.reason.to_owned()),
        "the route says: {name}"
    );
    assert_eq!((write.place)(conn, db), "n0", "the data say: {name}");
    assert_eq!(
        who(conn),
        "n0",
        "the block reads on from the primary: {name}"
    );
    let route = conn.last_route().expect("a statement ran");
    let stays = match write.keeps {
        Keeps::State => "session state",
        Keeps::Nothing => "the block has used the primary",
    };
    assert_eq!(
        route.reason.to_string(),
        stays,
        "the rest of the block: {name}"
    );
}

fn after_block(conn: &mut Conn, db: &Db, write: &Write) {
    let name = write.name;
    let mut other = conn.cluster().connection();
    let expected = match write.marks {
        Marks::Write => "n0",
        Marks::Nothing => "n1",
    };
    assert_eq!(
        other.distributed(who),
        expected,
        "a block of another handle: {name}"
    );
    let expected = match write.keeps {
        Keeps::State => "n0",
        Keeps::Nothing => expected,
    };
    assert_eq!(conn.distributed(who), expected, "another block: {name}");
    let mut stranger = db.pool.get().expect("handles are free");
    let elsewhere = Context::new().run(|| stranger.distributed(who));
    assert_eq!(elsewhere, "n1", "another request: {name}");
}

/// A connection that something was left in is closed, any other one is used again.
fn give_back(conn: PooledConn, write: &Write) {
    let cluster = conn.cluster().clone();
    let open = |cluster: &Cluster<Plain>| cluster.status().nodes[0].open;
    let before = open(&cluster);
    drop(conn);
    assert_eq!(
        before - open(&cluster),
        write.closed,
        "connections closed after: {}",
        write.name
    );
}

#[test]
fn what_writes_runs_on_the_primary_and_so_does_the_rest_of_its_block() {
    check(&common());
}

#[test]
fn what_only_this_database_writes_runs_on_the_primary_too() {
    check(&super::own_writes());
}
