//! The scanner against statements of the servers' own test suites, where these lie beside the repository.
use diesel_routed::statement::{Dialect, classify};
use flate2::read::GzDecoder;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

/// `../shared/corpus`, or the directory that `DIESEL_ROUTED_CORPUS` names.
fn corpus(file: &str) -> Option<impl BufRead> {
    let directory = std::env::var_os("DIESEL_ROUTED_CORPUS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/corpus")),
        PathBuf::from,
    );
    let path = directory.join(file);
    match File::open(&path) {
        Ok(file) => Some(BufReader::new(GzDecoder::new(file))),
        Err(_) => {
            println!("skipped: there is no {}", path.display());
            None
        }
    }
}

fn check(dialect: Dialect, file: &str) {
    let Some(lines) = corpus(file) else { return };
    let mut writes_taken_for_reads = Vec::new();
    let mut reads_missed = Vec::new();
    let mut reads = 0;
    for line in lines.lines() {
        let line: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        let sql = line["sql"].as_str().unwrap();
        let kind = classify(dialect, sql);
        match line["label"].as_str().unwrap() {
            "primary" if !kind.needs_primary() => {
                writes_taken_for_reads.push(format!("{} | {sql}", line["why"]));
            }
            "replica" => {
                reads += 1;
                if kind.needs_primary() {
                    reads_missed.push(format!("{:?} | {sql}", kind.need()));
                }
            }
            _ => {}
        }
    }
    let found = 100.0 * (reads - reads_missed.len()) as f64 / reads as f64;
    println!(
        "{file}: {found:.2} % of {reads} reads found; missed:\n{}",
        reads_missed.join("\n")
    );
    assert!(
        writes_taken_for_reads.is_empty(),
        "no statement that needs the primary is called a read:\n{}",
        writes_taken_for_reads.join("\n")
    );
    assert!(
        found >= 99.0,
        "at least 99 % of the reads are found, not {found:.2} %"
    );
}

#[test]
fn statements_of_postgresqls_own_suite_go_where_they_must() {
    check(Dialect::Postgres, "pg.jsonl.gz");
}

#[test]
fn statements_of_mariadbs_own_suite_go_where_they_must() {
    check(Dialect::Mysql, "maria.jsonl.gz");
}
