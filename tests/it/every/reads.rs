//! Every shape of read in every situation: who answers, by data, and what the router says of it.

use std::time::Duration;

use diesel::prelude::*;
use diesel::sql_types::Text;
use diesel_routed::{ClusterMode, Consistency, Context, Decision, Mode, Reason, Role, Route};

use super::backend::*;
use crate::kit::shapes::Shape;

/// The replica holds one note, and from then on nothing more arrives there.
pub(super) fn paused() -> Db {
    let db = db_with(1, patient);
    note(&db.pool, "old");
    db.cluster.wait_replicated();
    pause(&db);
    db
}

fn note(pool: &Pool, body: &str) {
    write(&mut pool.get().expect("handles are free"), body);
}

type Read<'a> = &'a mut dyn FnMut(&mut Conn);

/// What happens around a read. It runs the read once.
struct Situation {
    name: &'static str,
    around: fn(&mut Conn, Read<'_>),
    expected: (Role, Reason),
}

const fn situation(
    name: &'static str,
    around: fn(&mut Conn, Read<'_>),
    role: Role,
    reason: Reason,
) -> Situation {
    Situation {
        name,
        around,
        expected: (role, reason),
    }
}

fn in_transaction(conn: &mut Conn, read: Read<'_>) {
    conn.transaction(|conn| {
        read(conn);
        QueryResult::Ok(())
    })
    .expect("the transaction commits");
}

fn in_read_only_transaction(conn: &mut Conn, read: Read<'_>) {
    conn.read_only_transaction(|conn| {
        read(conn);
        QueryResult::Ok(())
    })
    .expect("the transaction commits");
}

#[rustfmt::skip]
fn blocks() -> Vec<Situation> {
    use {Reason::*, Role::*};
    vec![
        situation("outside any block", |c, read| read(c), Primary, PrimaryMode),
        situation("in a block", |c, read| c.distributed(read), Replica, Distributed),
        situation("in a block that has read", |c, read| c.distributed(|c| { who(c); read(c) }), Replica, Pinned),
        situation("in a block that has written", |c, read| c.distributed(|c| { write(c, "x"); read(c) }), Primary, Stuck),
        situation("in a block that has read and written", |c, read| c.distributed(|c| { who(c); write(c, "x"); read(c) }), Primary, Stuck),
        situation("in a block after a write", |c, read| { write(c, "x"); c.distributed(read) }, Primary, NotCaughtUp),
        situation("in a block after a block that wrote", |c, read| { c.distributed(|c| write(c, "x")); c.distributed(read) }, Primary, NotCaughtUp),
        situation("outside after a block", |c, read| { c.distributed(who); read(c) }, Primary, PrimaryMode),
        situation("in a block after one that read", |c, read| { c.distributed(who); c.distributed(read) }, Replica, Distributed),
        situation("in a block after a read on the primary", |c, read| { who(c); c.distributed(read) }, Replica, Distributed),
        // nested
        situation("in an inner block", |c, read| c.distributed(|c| c.distributed(read)), Replica, Distributed),
        situation("in an inner block after a read in the outer one", |c, read| c.distributed(|c| { who(c); c.distributed(read) }), Replica, Pinned),
        situation("in the outer block after a read in the inner one", |c, read| c.distributed(|c| { c.distributed(who); read(c) }), Replica, Pinned),
        situation("in an inner block after a write in the outer one", |c, read| c.distributed(|c| { write(c, "x"); c.distributed(read) }), Primary, Stuck),
        situation("in the inner block after a write in it", |c, read| c.distributed(|c| c.distributed(|c| { write(c, "x"); read(c) })), Primary, Stuck),
        situation("in the outer block after a write in the inner one", |c, read| c.distributed(|c| { c.distributed(|c| write(c, "x")); read(c) }), Primary, Stuck),
        // the primary on demand
        situation("in primary()", |c, read| c.primary(read), Primary, Forced),
        situation("in primary() in a block", |c, read| c.distributed(|c| c.primary(read)), Primary, Forced),
        situation("in a block in primary()", |c, read| c.primary(|c| c.distributed(read)), Primary, Forced),
        situation("in a block after primary() in it", |c, read| c.distributed(|c| { c.primary(who); read(c) }), Primary, Stuck),
        situation("in a block after primary()", |c, read| { c.primary(who); c.distributed(read) }, Replica, Distributed),
        situation("outside after primary()", |c, read| { c.primary(who); read(c) }, Primary, PrimaryMode),
        // by hand
        situation("in a block after stick_to_primary()", |c, read| { c.stick_to_primary(); c.distributed(read) }, Primary, NotCaughtUp),
        situation("in a block after stick_to_primary() in it", |c, read| c.distributed(|c| { c.stick_to_primary(); read(c) }), Primary, Stuck),
        situation("in a block after a write and unstick()", |c, read| { write(c, "x"); c.unstick(); c.distributed(read) }, Replica, Distributed),
        situation("in a block after a write and unstick() in it", |c, read| c.distributed(|c| { write(c, "x"); c.unstick(); read(c) }), Replica, Distributed),
    ]
}

#[rustfmt::skip]
fn transactions() -> Vec<Situation> {
    use {Reason::*, Role::*};
    vec![
        situation("in a transaction", in_transaction, Primary, Transaction),
        situation("in a transaction in a block", |c, read| c.distributed(|c| in_transaction(c, read)), Primary, Transaction),
        situation("in a block in a transaction", |c, read| in_transaction(c, &mut |c| c.distributed(&mut *read)), Primary, Transaction),
        situation("in a nested transaction", |c, read| in_transaction(c, &mut |c| in_transaction(c, read)), Primary, Transaction),
        situation("in a read-only transaction in a transaction", |c, read| in_transaction(c, &mut |c| in_read_only_transaction(c, read)), Primary, Transaction),
        situation("in a block after a transaction in it that read", |c, read| c.distributed(|c| { in_transaction(c, &mut |c| { who(c); }); read(c) }), Primary, Stuck),
        situation("in a block after a transaction that read", |c, read| { in_transaction(c, &mut |c| { who(c); }); c.distributed(read) }, Replica, Distributed),
        situation("in a block after a transaction that wrote", |c, read| { in_transaction(c, &mut |c| write(c, "x")); c.distributed(read) }, Primary, NotCaughtUp),
        situation("after a BEGIN that Diesel does not know of", |c, read| { batch(c, "BEGIN"); c.distributed(read); batch(c, "COMMIT") }, Primary, Transaction),
        // read-only ones
        situation("in a read-only transaction", in_read_only_transaction, Replica, ReadOnlyTransaction),
        situation("in a read-only transaction in a block", |c, read| c.distributed(|c| in_read_only_transaction(c, read)), Replica, ReadOnlyTransaction),
        situation("in a block in a read-only transaction", |c, read| in_read_only_transaction(c, &mut |c| c.distributed(&mut *read)), Replica, ReadOnlyTransaction),
        situation("in a transaction in a read-only transaction", |c, read| in_read_only_transaction(c, &mut |c| in_transaction(c, read)), Replica, ReadOnlyTransaction),
        situation("in a read-only transaction in primary()", |c, read| c.primary(|c| in_read_only_transaction(c, read)), Primary, ReadOnlyTransaction),
        situation("in a read-only transaction after a write", |c, read| { write(c, "x"); in_read_only_transaction(c, read) }, Primary, ReadOnlyTransaction),
        situation("in a read-only transaction in a block that has written", |c, read| c.distributed(|c| { write(c, "x"); in_read_only_transaction(c, read) }), Primary, ReadOnlyTransaction),
        situation("in a block after a read-only transaction", |c, read| c.distributed(|c| { in_read_only_transaction(c, &mut |c| { who(c); }); read(c) }), Replica, Pinned),
        situation("outside after a read-only transaction", |c, read| { in_read_only_transaction(c, &mut |c| { who(c); }); read(c) }, Primary, PrimaryMode),
    ]
}

#[rustfmt::skip]
fn consistencies() -> Vec<Situation> {
    use {Consistency::*, Reason::*, Role::*};
    vec![
        situation("Eventual", |c, read| c.distributed_with(Eventual, read), Replica, Distributed),
        situation("Eventual after a write", |c, read| { write(c, "x"); c.distributed_with(Eventual, read) }, Replica, Distributed),
        situation("Eventual that has written", |c, read| c.distributed_with(Eventual, |c| { write(c, "x"); read(c) }), Primary, Stuck),
        situation("Eventual that has read, after a write of another handle", |c, read| c.distributed_with(Eventual, |c| { who(c); write(&mut c.cluster().connection(), "x"); read(c) }), Replica, Pinned),
        situation("Session that has read, after a write of another handle", |c, read| c.distributed(|c| { who(c); write(&mut c.cluster().connection(), "x"); read(c) }), Primary, NotCaughtUp),
        situation("Eventual in a block that has written", |c, read| c.distributed(|c| { write(c, "x"); c.distributed_with(Eventual, read) }), Replica, Distributed),
        situation("a block after Eventual in it that wrote", |c, read| c.distributed(|c| { c.distributed_with(Eventual, |c| write(c, "x")); read(c) }), Primary, Stuck),
        situation("Strong", |c, read| c.distributed_with(Strong, read), Primary, Forced),
        situation("Strong in a block", |c, read| c.distributed(|c| { who(c); c.distributed_with(Strong, read) }), Primary, Forced),
        situation("a block after Strong in it", |c, read| c.distributed(|c| { c.distributed_with(Strong, who); read(c) }), Primary, Stuck),
        situation("PrimaryPreferred", |c, read| c.distributed_with(PrimaryPreferred, read), Primary, Forced),
        situation("PrimaryPreferred after a write", |c, read| { write(c, "x"); c.distributed_with(PrimaryPreferred, read) }, Primary, Forced),
        situation("MaxLag that no paused replica keeps", |c, read| c.distributed_with(MaxLag(Duration::ZERO), read), Primary, Lagging),
        situation("MaxLag after a write", |c, read| { write(c, "x"); c.distributed_with(MaxLag(Duration::from_secs(300)), read) }, Primary, NotCaughtUp),
        situation("Session in Eventual", |c, read| c.distributed_with(Eventual, |c| c.distributed_with(Session, read)), Replica, Distributed),
    ]
}

#[rustfmt::skip]
fn without_sticking() -> Vec<Situation> {
    use {Reason::*, Role::*};
    vec![
        situation("in a block after a write that does not stick", |c, read| { c.without_sticking(|c| write(c, "x")); c.distributed(read) }, Replica, Distributed),
        situation("in a block after a write in it that does not stick", |c, read| c.distributed(|c| { c.without_sticking(|c| write(c, "x")); read(c) }), Replica, Distributed),
        situation("in a block that does not stick and wrote", |c, read| c.without_sticking(|c| c.distributed(|c| { write(c, "x"); read(c) })), Replica, Distributed),
        situation("in a block that does not stick, after a write that does", |c, read| { write(c, "x"); c.without_sticking(|c| c.distributed(read)) }, Primary, NotCaughtUp),
        situation("outside, after a write that does not stick", |c, read| { c.without_sticking(|c| write(c, "x")); read(c) }, Primary, PrimaryMode),
        situation("in a block after a transaction that does not stick", |c, read| { c.without_sticking(|c| in_transaction(c, &mut |c| write(c, "x"))); c.distributed(read) }, Replica, Distributed),
    ]
}

/// Runs each shape in each situation on a handle and in a context of its own.
fn check(db: &Db, situations: &[Situation]) {
    for situation in situations {
        for shape in shapes() {
            let mut conn = db.pool.get().expect("handles are free");
            let mut ran = 0;
            let mut read = |conn: &mut Conn| {
                ran += 1;
                check_read(conn, situation, &shape);
            };
            Context::new().run(|| (situation.around)(&mut conn, &mut read));
            assert_eq!(ran, 1, "{} runs its read once", situation.name);
        }
    }
}

fn check_read(conn: &mut Conn, situation: &Situation, shape: &Shape<Conn>) {
    let what = format!("{}, {}", shape.name, situation.name);
    let (role, reason) = &situation.expected;
    let Decision {
        target,
        reason: why,
        ..
    } = (shape.explain)(conn);
    assert_eq!((target, &why), (*role, reason), "explained: {what}");
    let node = (shape.read)(conn);
    let Route {
        node: told,
        role: of,
        reason: why,
        ..
    } = conn.last_route().expect("a statement ran");
    assert_eq!(node, name_of(*role), "the data say: {what}");
    assert_eq!(*told, *node, "the route names the node: {what}");
    assert_eq!((of, &why), (*role, reason), "the route says: {what}");
}

pub(super) fn name_of(role: Role) -> &'static str {
    match role {
        Role::Primary => "n0",
        Role::Replica => "n1",
    }
}

/// Every way to read that this database has.
fn shapes() -> Vec<Shape<Conn>> {
    let mut shapes = common_shapes();
    shapes.extend(super::own_shapes());
    shapes
}

#[derive(QueryableByName)]
pub(super) struct Named {
    #[diesel(sql_type = Text)]
    pub(super) name: String,
}

/// For reads that tell only whether the primary answered.
fn if_primary(primary: bool) -> String {
    if primary { "n0" } else { "n1" }.to_owned()
}

fn common_shapes() -> Vec<Shape<Conn>> {
    use crate::kit::shapes::{only, shape};
    use diesel::dsl::{count_star, exists, select};
    use node_name::{name, table as node};
    vec![
        shape!("select", node.select(name), only::<String>),
        shape!(
            "filter",
            node.filter(name.ne("")).select(name).limit(1),
            only::<String>
        ),
        shape!("boxed", node.select(name).into_boxed(), only::<String>),
        Shape {
            name: "boxed with a borrowed bind",
            explain: |conn| {
                let none = String::from("none");
                let query = node.filter(name.ne(none.as_str())).into_boxed();
                conn.explain(&query).expect("a read")
            },
            read: |conn| {
                let none = String::from("none");
                let query = node
                    .filter(name.ne(none.as_str()))
                    .select(name)
                    .into_boxed();
                query.first(conn).expect("every node answers it")
            },
        },
        shape!(
            "in a list",
            node.filter(name.eq_any(["n0", "n1"])).select(name),
            only::<String>
        ),
        shape!(
            "not in an empty list",
            node.filter(name.ne_all(Vec::<String>::new())).select(name),
            only::<String>
        ),
        shape!(
            "sql_query",
            diesel::sql_query("SELECT name FROM node_name"),
            |rows: Vec<Named>| rows[0].name.clone()
        ),
        shape!(
            "sql_query after a comment",
            diesel::sql_query("/* who? */ -- you\nSELECT name FROM node_name"),
            |rows: Vec<Named>| rows[0].name.clone()
        ),
        shape!(
            "sql_query with a common table expression",
            diesel::sql_query(
                "WITH me (who) AS (SELECT name FROM node_name) SELECT who AS name FROM me"
            ),
            |rows: Vec<Named>| rows[0].name.clone()
        ),
        shape!(
            "count",
            node.filter(name.eq("n0")).select(count_star()),
            |rows: Vec<i64>| if_primary(rows[0] == 1)
        ),
        shape!(
            "exists",
            select(exists(node.filter(name.eq("n0")))),
            |rows: Vec<bool>| if_primary(rows[0])
        ),
        shape!(
            "join",
            node.inner_join(note::table.on(note::body.eq("old")))
                .select((name, note::body)),
            |rows: Vec<(String, String)>| rows[0].0.clone()
        ),
        shape!(
            "left join",
            node.left_join(note::table.on(note::body.eq("none")))
                .select((name, note::body.nullable())),
            |rows: Vec<(String, Option<String>)>| rows[0].0.clone()
        ),
        shape!(
            "subquery",
            node.filter(exists(note::table.filter(note::body.ne(name))))
                .select(name),
            only::<String>
        ),
        shape!(
            "union",
            node.select(name).union(node.select(name)),
            only::<String>
        ),
        shape!("distinct", node.select(name).distinct(), only::<String>),
        shape!(
            "group",
            node.group_by(name).select((name, count_star())),
            |rows: Vec<(String, i64)>| rows[0].0.clone()
        ),
        Shape {
            name: "load_iter",
            explain: |conn| conn.explain(&node.select(name)).expect("a read"),
            read: |conn| {
                let mut rows = node
                    .select(name)
                    .load_iter::<String, diesel::connection::DefaultLoadingMode>(conn)
                    .expect("a read");
                rows.next().expect("a row").expect("a name")
            },
        },
    ]
}

#[test]
fn a_read_goes_where_its_block_says() {
    check(&paused(), &blocks());
}

#[test]
fn a_read_in_a_transaction_goes_where_the_transaction_is() {
    check(&paused(), &transactions());
}

#[test]
fn a_read_goes_where_it_is_consistent_enough() {
    check(&paused(), &consistencies());
}

#[test]
fn what_does_not_stick_sends_no_read_to_the_primary() {
    check(&paused(), &without_sticking());
}

#[test]
fn with_the_primary_alone_in_use_a_block_reads_there() {
    let db = paused();
    let cluster = db.pool.get().unwrap().cluster().clone();
    cluster.set_mode(ClusterMode::PrimaryOnly);
    let in_block = |c: &mut Conn, read: Read<'_>| c.distributed(read);
    let row = situation("primary only", in_block, Role::Primary, Reason::PrimaryMode);
    check(&db, &[row]);
    cluster.set_mode(ClusterMode::Normal);
    let row = situation("normal again", in_block, Role::Replica, Reason::Distributed);
    check(&db, &[row]);
}

#[test]
#[rustfmt::skip]
fn in_distributed_mode_a_handle_is_a_block() {
    use {Reason::*, Role::*};
    let db = paused();
    let pool = pool(patient(crate::kit::config(&db.cluster)).default_mode(Mode::Distributed));
    warm(&pool);
    let db = Db { pool, ..db };
    check(&db, &[
        situation("fresh", |c, read| read(c), Replica, Distributed),
        situation("again", |c, read| { who(c); read(c) }, Replica, Pinned),
        situation("after a write", |c, read| { write(c, "x"); read(c) }, Primary, Stuck),
        situation("in a block", |c, read| c.distributed(read), Replica, Distributed),
        situation("in a block after a write", |c, read| { write(c, "x"); c.distributed(read) }, Primary, Stuck),
        situation("after a block that wrote", |c, read| { c.distributed(|c| write(c, "x")); read(c) }, Primary, Stuck),
        situation("in primary()", |c, read| c.primary(read), Primary, Forced),
        situation("after primary()", |c, read| { c.primary(who); read(c) }, Primary, Stuck),
        situation("in a transaction", in_transaction, Primary, Transaction),
        situation("in a read-only transaction", in_read_only_transaction, Replica, ReadOnlyTransaction),
        situation("after a write that does not stick", |c, read| { c.without_sticking(|c| write(c, "x")); read(c) }, Replica, Distributed),
    ]);
    let mut conn: diesel::r2d2::PooledConnection<_> = db.pool.get().unwrap();
    write(&mut conn, "x");
    drop(conn);
    let mut conn = db.pool.get().unwrap();
    assert_eq!(who(&mut conn), "n1", "a handle that comes back is a new block");
}
