//! What Diesel itself offers works through the routed connection, whichever node answers.

use std::sync::{Arc, Mutex};

use diesel::connection::{
    CacheSize, DefaultLoadingMode, Instrumentation, InstrumentationEvent, LoadConnection,
    set_default_instrumentation,
};
use diesel::deserialize::FromSql;
use diesel::prelude::*;
use diesel::query_builder::AsQuery;
use diesel::row::{Field, Row};
use diesel::sql_types::Text;

use super::backend::*;

type DB = <Plain as Connection>::Backend;

/// Writes down what it is told.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<String>>>);

impl Recorder {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Instrumentation for Recorder {
    fn on_connection_event(&mut self, event: InstrumentationEvent<'_>) {
        let text = match event {
            InstrumentationEvent::StartQuery { .. } => "start".to_owned(),
            InstrumentationEvent::FinishQuery { error: None, .. } => "finish".to_owned(),
            InstrumentationEvent::FinishQuery { error: Some(_), .. } => "fail".to_owned(),
            InstrumentationEvent::CacheQuery { .. } => "cache".to_owned(),
            _ => return,
        };
        self.0.lock().unwrap().push(text);
    }
}

fn without_cache(events: Vec<String>) -> Vec<String> {
    events
        .into_iter()
        .filter(|event| event != "cache")
        .collect()
}

#[test]
fn instrumentation_is_told_once_of_each_statement_whichever_node_answers() {
    let db = db(1);
    let mut conn = db.pool.get().unwrap();
    let recorder = Recorder::default();
    conn.set_instrumentation(recorder.clone());
    type Statement = (&'static str, fn(&mut Conn));
    let statements: [Statement; 6] = [
        ("a read on the primary", |conn| drop(who(conn))),
        ("a read on a replica", |conn| drop(conn.distributed(who))),
        ("a write", |conn| write(conn, "a")),
        ("a write in a block", |conn| {
            conn.distributed(|conn| write(conn, "b"))
        }),
        ("a batch", |conn| {
            batch(conn, "INSERT INTO note (body) VALUES ('c')")
        }),
        ("a read in a block after writes", |conn| {
            drop(conn.distributed(bodies))
        }),
    ];
    for (what, statement) in statements {
        statement(&mut conn);
        assert_eq!(
            without_cache(recorder.take()),
            ["start", "finish"],
            "{what}"
        );
    }
    let _ = diesel::sql_query("SELECT nothing FROM nowhere").execute(&mut conn);
    let failed = without_cache(recorder.take());
    assert!(
        failed == ["start", "fail"] || failed.is_empty(),
        "a failure is told once: {failed:?}"
    );
}

#[test]
fn instrumentation_set_later_reaches_connections_that_are_open() {
    let db = db(1);
    let mut conn = db.pool.get().unwrap();
    conn.distributed(|conn| {
        who(conn);
        let recorder = Recorder::default();
        conn.set_instrumentation(recorder.clone());
        who(conn);
        assert_eq!(without_cache(recorder.take()), ["start", "finish"]);
        write(conn, "a");
        assert_eq!(without_cache(recorder.take()), ["start", "finish"]);
    });
}

#[test]
fn instrumentation_is_taken_off_a_connection_that_goes_back() {
    let db = db(1);
    let cluster = db.pool.get().unwrap().cluster().clone();
    let recorder = Recorder::default();
    let mut first = cluster.connection();
    first.set_instrumentation(recorder.clone());
    first.distributed(who);
    who(&mut first);
    drop(first);
    recorder.take();
    let mut second = cluster.connection();
    second.distributed(who);
    who(&mut second);
    let open: Vec<u32> = cluster
        .status()
        .nodes
        .iter()
        .map(|node| node.open)
        .collect();
    assert_eq!(open, [1, 1], "the same connections as before");
    assert_eq!(
        recorder.take(),
        [""; 0],
        "another handle's statements are not told"
    );
}

static DEFAULT: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Notes those statements that the test marks: connections are also set up.
fn default_recorder() -> Option<Box<dyn Instrumentation>> {
    Some(Box::new(|event: InstrumentationEvent<'_>| {
        if let InstrumentationEvent::StartQuery { query, .. } = event {
            let query = query.to_string();
            if query.contains("told once") {
                DEFAULT.lock().unwrap().push(query);
            }
        }
    }))
}

#[test]
fn the_default_instrumentation_is_told_once_of_each_statement() {
    set_default_instrumentation(default_recorder).unwrap();
    let db = db(1);
    let told = || std::mem::take(&mut *DEFAULT.lock().unwrap()).len();
    for _ in 0..2 {
        let mut conn = db.pool.get().unwrap();
        let read = || diesel::sql_query("SELECT 'told once' AS name");
        read().execute(&mut conn).unwrap();
        assert_eq!(told(), 1, "on the primary");
        conn.distributed(|conn| read().execute(conn)).unwrap();
        assert_eq!(told(), 1, "on a replica");
    }
}

#[test]
fn the_size_of_the_statement_cache_holds_for_nodes_opened_later() {
    let db = db(1);
    let cached = |size: Option<CacheSize>| {
        let mut conn = db.pool.get().unwrap().cluster().connection();
        let recorder = Recorder::default();
        conn.set_instrumentation(recorder.clone());
        if let Some(size) = size {
            conn.set_prepared_statement_cache_size(size);
        }
        bodies(&mut conn);
        conn.distributed(bodies);
        recorder
            .take()
            .iter()
            .filter(|event| *event == "cache")
            .count()
    };
    assert_eq!(cached(Some(CacheSize::Disabled)), 0, "neither node caches");
    assert_eq!(
        cached(None),
        2,
        "each node caches, and what the last handle set is gone"
    );
}

/// Runs `check` on the primary, then on a replica.
fn on_both(check: fn(&mut Conn)) {
    let db = db(1);
    let mut conn = db.pool.get().unwrap();
    ["a", "b", "c"]
        .iter()
        .for_each(|body| write(&mut conn, body));
    db.cluster.wait_replicated();
    drop(conn);
    let mut conn = db.pool.get().unwrap();
    check(&mut conn);
    assert_eq!(&*conn.last_route().unwrap().node, "n0");
    conn.distributed(|conn| {
        check(conn);
        assert_eq!(&*conn.last_route().unwrap().node, "n1");
    });
}

#[test]
fn a_cursor_that_is_half_read_hinders_nothing() {
    on_both(|conn| {
        for read in 0..3 {
            let query = note::table.select(note::body).order(note::id);
            let mut rows = query.load_iter::<String, DefaultLoadingMode>(conn).unwrap();
            let taken: Vec<String> = rows.by_ref().take(read).map(Result::unwrap).collect();
            assert_eq!(taken, ["a", "b", "c"][..read]);
            drop(rows);
            assert_eq!(bodies(conn), ["a", "b", "c"]);
        }
    });
}

#[test]
fn rows_may_be_kept_past_their_cursor() {
    on_both(|conn| {
        let query = note::table.select(note::body).order(note::id).as_query();
        let cursor = LoadConnection::<DefaultLoadingMode>::load(conn, query).unwrap();
        let rows: Vec<_> = cursor.map(Result::unwrap).collect();
        let body = |row: &<Conn as LoadConnection>::Row<'_, '_>| {
            let field = row.get(0).unwrap();
            <String as FromSql<Text, DB>>::from_nullable_sql(field.value()).unwrap()
        };
        assert_eq!(rows.iter().map(body).collect::<Vec<_>>(), ["a", "b", "c"]);
    });
}

#[test]
fn a_cursor_tells_how_many_rows_there_are_at_least() {
    on_both(|conn| {
        let query = note::table.select(note::body).order(note::id);
        let rows = query.load_iter::<String, DefaultLoadingMode>(conn).unwrap();
        let (lower, upper) = rows.size_hint();
        assert!(
            lower <= 3 && upper.is_none_or(|upper| upper >= 3),
            "{lower} to {upper:?}"
        );
        assert_eq!(rows.count(), 3);
    });
}

#[test]
fn lists_binds_and_boxes_are_sent_as_they_are() {
    on_both(|conn| {
        let empty: Vec<i32> = vec![];
        let none = note::table
            .filter(note::id.eq_any(&empty))
            .select(note::body);
        assert_eq!(none.load::<String>(conn).unwrap(), [""; 0]);
        let all = note::table.filter(note::id.ne_all(&empty)).count();
        assert_eq!(all.get_result::<i64>(conn), Ok(3));
        let wanted = vec!["a".to_owned(), "c".to_owned()];
        let some = note::table
            .filter(note::body.eq_any(&wanted))
            .select(note::body)
            .order(note::id);
        assert_eq!(some.load::<String>(conn).unwrap(), wanted);
        // a bind that is borrowed for less than the connection
        let found = {
            let body = String::from("b");
            let boxed = note::table
                .filter(note::body.eq(body.as_str()))
                .select(note::body)
                .into_boxed();
            boxed.load::<String>(conn).unwrap()
        };
        assert_eq!(found, ["b"]);
        let missing = note::table
            .filter(note::body.eq("z"))
            .select(note::id)
            .first::<i32>(conn);
        assert_eq!(missing.optional(), Ok(None));
    });
}

#[test]
fn a_query_is_printed_as_for_the_plain_connection() {
    fn printed<C: Connection<Backend = DB>>() -> String {
        let query = note::table.filter(note::body.eq("a")).select(note::id);
        diesel::debug_query::<C::Backend, _>(&query).to_string()
    }
    assert_eq!(printed::<Conn>(), printed::<Plain>());
}

#[derive(Debug, Clone, PartialEq, Queryable, Identifiable, AsChangeset)]
#[diesel(table_name = note)]
struct Note {
    id: i32,
    body: String,
}

#[test]
fn saved_changes_are_those_of_the_primary() {
    let db = db_with(1, patient);
    write(&mut db.pool.get().unwrap(), "a");
    db.cluster.wait_replicated();
    pause(&db);
    let mut conn = db.pool.get().unwrap();
    let saved = |body: &str, id: i32| Note {
        id,
        body: body.to_owned(),
    };
    let id = conn
        .distributed(|conn| note::table.select(note::id).first::<i32>(conn))
        .unwrap();
    let pooled = saved("b", id).save_changes::<Note>(&mut conn).unwrap();
    assert_eq!(pooled, saved("b", id), "through the pool");
    drop(conn);
    let mut conn = db.pool.get().unwrap();
    conn.distributed(|conn| {
        assert_eq!(bodies(conn), ["a"], "the replica is behind");
        let in_block = saved("c", id).save_changes::<Note>(conn).unwrap();
        assert_eq!(in_block, saved("c", id), "in a block");
        assert_eq!(bodies(conn), ["c"]);
    });
    assert_eq!(conn.distributed(bodies), ["c"], "and later blocks see it");
}
