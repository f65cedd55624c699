//! Jobs that read what their producer wrote, from the replica as soon as it has that:
//!
//! * `cargo run -p notes --bin notes-jobs -- add TEXT` writes a note, and a job about it,
//! * `cargo run -p notes --bin notes-jobs -- work` does the jobs, in another process.

#![forbid(unsafe_code)]

use std::thread;
use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel_routed::{Consistency, Context, Role};
use notes::{Db, Failure, route};

diesel::table! {
    jobs (id) {
        id -> BigInt,
        note -> BigInt,
        // NULL until the producer has said what it wrote
        token -> Nullable<Text>,
    }
}

const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS jobs (id BIGINT PRIMARY KEY, note BIGINT NOT NULL, token TEXT)";

type Job = (i64, i64, Option<String>);

fn main() -> Result<(), Failure> {
    let pool = notes::open()?;
    let mut conn = pool.get()?;
    conn.batch_execute(TABLE)?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["add", text] => Ok(add(&mut conn, text)?),
        ["work"] => loop {
            if !work(&mut conn)? {
                thread::sleep(Duration::from_millis(100));
            }
        },
        _ => Err("usage: notes-jobs add TEXT | work".into()),
    }
}

fn add(conn: &mut Db, text: &str) -> QueryResult<()> {
    // in one transaction: no note without its job
    let job = conn.transaction(|conn| {
        let (job, note) = (notes::new_id(), notes::add(conn, text)?);
        let row = (jobs::id.eq(job), jobs::note.eq(note));
        diesel::insert_into(jobs::table).values(row).execute(conn)?;
        QueryResult::Ok(job)
    })?;
    // after it: only now has the write a position, by which a replica can be told to have it,
    // however long the job waits
    let token = conn.token().unwrap_or_default();
    diesel::update(jobs::table.find(job))
        .set(jobs::token.eq(token))
        .execute(conn)?;
    Ok(())
}

/// Does a job if there is one. With more than one worker, lock the row.
fn work(conn: &mut Db) -> QueryResult<bool> {
    let Some((job, note, token)) = jobs::table.order(jobs::id).first::<Job>(conn).optional()?
    else {
        return Ok(false);
    };
    let consistency = match token {
        Some(_) => Consistency::Session,
        // too early for its token, or the producer has died: surely on the primary
        None => Consistency::Strong,
    };
    let context = Context::resume(&token.unwrap_or_default());
    let (body, role) = context.run(|| {
        route::distributed_with(consistency, |conn| {
            let note = notes::notes::table.find(note);
            let body = note.select(notes::notes::body).first::<String>(conn)?;
            QueryResult::Ok((body, conn.last_route().map(|route| route.role)))
        })
    })?;
    let place = match role {
        Some(Role::Replica) => "replica",
        _ => "primary",
    };
    println!("{body:?}, from the {place}");
    diesel::delete(jobs::table.find(job)).execute(conn)?;
    Ok(true)
}
