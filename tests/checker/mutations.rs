//! Deliberate mistakes in the rules, each of which the checker has to find.
//!
//! A mistake is a line of `src` and what stands in its place. It is made in a copy of the crate, so
//! that the code itself knows nothing of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A rule that is broken.
struct Mutation {
    rule: &'static str,
    file: &'static str,
    /// Stands there once.
    right: &'static str,
    wrong: &'static str,
    /// Where it can be found.
    found_on: &'static [&'static str],
}

const BOTH: &[&str] = &["postgres", "mariadb"];

const MUTATIONS: &[Mutation] = &[
    Mutation {
        rule: "a write is marked beyond its end",
        file: "src/context/mark.rs",
        right: "self.settle(Outcome::Kept);",
        wrong: "self.settle(Outcome::GivenBack);",
        found_on: BOTH,
    },
    Mutation {
        rule: "a token is taken up",
        file: "src/context/resumed.rs",
        right: "Some(position) => marks.resume(position, now + left),",
        wrong: "Some(_) => {}",
        found_on: BOTH,
    },
    Mutation {
        rule: "of the tokens of two tabs each counts",
        file: "src/context/token.rs",
        right: "Some(known) => written.and(known),",
        wrong: "Some(_) => written,",
        found_on: BOTH,
    },
    Mutation {
        rule: "a replica serves once it has reached the position",
        file: "src/context/stickiness.rs",
        right: "Some(reached) => Has::by(covers(&reached.position)),",
        wrong: "Some(_) => Has::All,",
        found_on: BOTH,
    },
    Mutation {
        rule: "a block stays on its replica as long as that misses nothing",
        file: "src/connection/unit.rs",
        right: "need => !has(&need),",
        wrong: "_ => false,",
        found_on: BOTH,
    },
    Mutation {
        rule: "a block sees nothing older than the one before",
        file: "src/context/stickiness.rs",
        right: "Some(seen) => written.min(seen.met_by(who, includes, covers)),",
        wrong: "Some(_) => written,",
        found_on: BOTH,
    },
    Mutation {
        rule: "what a request was shown the next one knows",
        file: "src/context/resumed.rs",
        right: "until: now + left_of(viewed.until, wall, sticky_for),",
        wrong: "until: now,",
        // within some 3,000 operations; on PostgreSQL it takes more than an ordinary run has
        found_on: &["mariadb"],
    },
];

#[test]
fn every_mutation_has_its_place() {
    for Mutation { file, right, .. } in MUTATIONS {
        let text = fs::read_to_string(root().join(file)).expect(file);
        let times = text.matches(right).count();
        assert_eq!(times, 1, "{file} has this once: {right}");
    }
}

/// `cargo test --all-features --test checker mutations -- --ignored --nocapture`
#[test]
#[ignore = "builds the crate anew for each of them"]
fn the_checker_finds_each_mutation_of_the_rules() {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutations");
    let parts = [
        "src",
        "tests",
        "examples",
        "benches",
        "Cargo.toml",
        "Cargo.lock",
    ];
    for part in parts {
        copy_all(&root().join(part), &copy.join(part));
    }
    let missed: Vec<String> = MUTATIONS
        .iter()
        .flat_map(|mutation| mutation.missed_in(&copy))
        .collect();
    assert!(missed.is_empty(), "not found: {missed:#?}");
}

impl Mutation {
    /// On which databases the checker does not find it.
    fn missed_in(&self, copy: &Path) -> Vec<String> {
        let file = copy.join(self.file);
        let text = fs::read_to_string(&file).expect("it was copied");
        fs::write(&file, text.replace(self.right, self.wrong)).expect("it can be written");
        let missed = self.found_on.iter().filter(|database| {
            let found = found_after(copy, database);
            let after = found.as_deref().unwrap_or("no number of");
            println!("{}, on {database}: after {after} operations", self.rule);
            found.is_none()
        });
        let missed = missed.map(|database| format!("{} ({database})", self.rule));
        let missed = missed.collect();
        fs::write(&file, text).expect("it can be written");
        missed
    }
}

/// After how many operations the checker of the crate there finds a violation.
fn found_after(manifest: &Path, database: &str) -> Option<String> {
    let output = Command::new(env!("CARGO"))
        .args(["test", "--all-features", "--test", "checker", "--"])
        .arg(format!("{database}::checker::every_client"))
        .current_dir(manifest)
        // in the one of the crate itself they would be taken for each other
        .env("CARGO_TARGET_DIR", manifest.join("target"))
        .output()
        .expect("cargo runs");
    let text = String::from_utf8_lossy(&output.stdout);
    if !text.contains("test result") {
        panic!("{}", String::from_utf8_lossy(&output.stderr));
    }
    let (_, after) = text.split_once("found_after: Some(")?;
    Some(after.split_once(',')?.0.trim().to_owned())
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Copies what has changed, so that as little as possible is compiled again.
fn copy_all(from: &Path, to: &Path) {
    if from.is_dir() {
        for entry in fs::read_dir(from).expect("a directory") {
            let name = entry.expect("an entry").file_name();
            copy_all(&from.join(&name), &to.join(&name));
        }
        return;
    }
    let new = fs::read(from).expect("a file");
    if fs::read(to).ok().as_ref() != Some(&new) {
        let parent = to.parent().expect("it is in the copy");
        fs::create_dir_all(parent).expect("a directory");
        fs::write(to, new).expect("a file");
    }
}
