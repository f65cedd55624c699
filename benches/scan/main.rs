//! How fast SQL is scanned: statements of the servers' own test suites, where these lie beside the
//! repository, and generated ones.
//!
//! ```sh
//! cargo bench --bench scan
//! ```

use std::fs::File;
use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use diesel_routed::statement::{Dialect, Rules};
use flate2::read::GzDecoder;

const ROUNDS: usize = 101;
/// How long one round takes at least.
const BATCH: Duration = Duration::from_millis(1);

fn main() {
    println!("medians of {ROUNDS} rounds\n");
    println!("{:<28} {:>10} {:>12} {:>12}", "", "bytes", "time", "speed");
    for (dialect, file) in [
        (Dialect::Postgres, "pg.jsonl.gz"),
        (Dialect::Mysql, "maria.jsonl.gz"),
    ] {
        match corpus(file) {
            Some(statements) => line(file, dialect, &statements),
            None => println!("{file:<28} skipped: it is not beside the repository"),
        }
    }
    for (dialect, name) in [
        (Dialect::Postgres, "PostgreSQL"),
        (Dialect::Mysql, "MySQL"),
        (Dialect::Sqlite, "SQLite"),
    ] {
        for (size, called) in [(1_000, "1 kB"), (100_000, "100 kB")] {
            line(
                &format!("{name}, {called}"),
                dialect,
                &[generated(dialect, size)],
            );
        }
    }
}

fn line(what: &str, dialect: Dialect, statements: &[String]) {
    let bytes: usize = statements.iter().map(String::len).sum();
    let time = time(dialect, statements);
    let speed = bytes as f64 / time.as_secs_f64() / 1e6;
    let time = time.as_secs_f64() * 1e6;
    println!("{what:<28} {bytes:>10} {time:>9.2} us {speed:>7.0} MB/s");
}

/// The time to scan all of them once.
fn time(dialect: Dialect, statements: &[String]) -> Duration {
    let rules = Rules::new(dialect);
    let once = || {
        for sql in statements {
            black_box(rules.classify(black_box(sql)));
        }
    };
    let round = || {
        let (began, mut times) = (Instant::now(), 0);
        while began.elapsed() < BATCH {
            once();
            times += 1;
        }
        began.elapsed() / times
    };
    let mut rounds: Vec<Duration> = (0..ROUNDS).map(|_| round()).collect();
    rounds.sort();
    rounds[ROUNDS / 2]
}

/// `../shared/corpus`, or the directory that `DIESEL_ROUTED_CORPUS` names.
fn corpus(file: &str) -> Option<Vec<String>> {
    let directory = std::env::var_os("DIESEL_ROUTED_CORPUS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/corpus")),
        PathBuf::from,
    );
    let lines = BufReader::new(GzDecoder::new(File::open(directory.join(file)).ok()?)).lines();
    let sql = |line: String| -> String {
        let line: serde_json::Value = serde_json::from_str(&line).expect("a line is JSON");
        line["sql"].as_str().expect("it has SQL").to_owned()
    };
    Some(lines.map(|line| sql(line.expect("a text"))).collect())
}

/// A query as Diesel writes them, of about so many bytes: columns, joins, conditions and values.
fn generated(dialect: Dialect, size: usize) -> String {
    let (quote, parameter) = match dialect {
        Dialect::Postgres => ('"', "$1"),
        Dialect::Mysql | Dialect::Sqlite => ('`', "?"),
    };
    let name = |name: &str| format!("{quote}{name}{quote}");
    let (posts, users) = (name("posts"), name("users"));
    let mut sql = format!(
        "SELECT {posts}.{}, count(*), lower({users}.{})",
        name("id"),
        name("name")
    );
    sql += &format!(
        " FROM ({posts} INNER JOIN {users} ON ({posts}.{} = {users}.{}))",
        name("user_id"),
        name("id")
    );
    sql += &format!(" WHERE ({posts}.{} > {parameter})", name("written_at"));
    while sql.len() < size {
        sql += &format!(
            " AND (({posts}.{} = {parameter}) OR coalesce({users}.{}, 'it''s new') <> 'x')",
            name("title"),
            name("state")
        );
    }
    sql
}
