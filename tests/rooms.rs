//! What holds for the source itself: its rooms, and how large a room may be.

use std::fs;
use std::path::{Path, PathBuf};

/// Rooms that an asynchronous twin shares: they know no connection, do no I/O and read no clock.
const PURE: &[&str] = &[
    "cluster/config",
    "cluster/roles.rs",
    "cluster/select",
    "cluster/status.rs",
    "context",
    "decision.rs",
    "node/health",
    "node/history.rs",
    "position",
    "report.rs",
    "statement",
];

/// Words that have no place there, with the files that may use them all the same.
const FOREIGN: &[(&str, &[&str])] = &[
    ("Connection", &[]),
    ("LoadConnection", &[]),
    ("MysqlConnection", &[]),
    ("PgConnection", &[]),
    ("ReplicatedConnection", &[]),
    ("RoutedConnection", &[]),
    ("SqliteConnection", &[]),
    ("crate::backend", &[]),
    ("crate::connection", &[]),
    ("fs", &[]),
    ("r2d2", &[]),
    // an address is only parsed there
    ("net", &["cluster/config/url.rs"]),
    // the ends of blocks are stamped there, and the rest is told the time
    (
        "now()",
        &["context/mod.rs", "context/carry.rs", "context/mark.rs"],
    ),
    // tokens name times that other machines understand
    ("SystemTime", &["context/carry.rs"]),
];

const LINES_OF_A_FILE: usize = 400;
const LINES_OF_A_FUNCTION: usize = 50;

/// A source file without its tests, its comments left out.
struct Source {
    /// Relative to `src`.
    name: String,
    lines: Vec<String>,
    length: usize,
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![];
    collect(&root, &mut files);
    files.retain(|file| !is_in(file.strip_prefix(&root).unwrap(), "tests"));
    files.sort();
    let sources: Vec<_> = files.iter().map(|file| read(&root, file)).collect();
    assert!(sources.len() > 40, "the source was found");
    sources
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Whether a module, by its file without the extension or a folder around it, is called so.
fn is_in(file: &Path, module: &str) -> bool {
    let path = file.with_extension("");
    path.components().any(|part| part.as_os_str() == module)
}

fn read(root: &Path, file: &Path) -> Source {
    let text = fs::read_to_string(file).unwrap();
    let code = text.split("mod tests {").next().unwrap_or_default();
    let without_comment = |line: &str| {
        let comment = line.find("//").filter(|at| !line[..*at].ends_with(':'));
        line[..comment.unwrap_or(line.len())].to_owned()
    };
    Source {
        name: file
            .strip_prefix(root)
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned(),
        lines: code.lines().map(without_comment).collect(),
        length: text.lines().count(),
    }
}

/// Whether `word` stands in `line` as a whole.
fn has_word(line: &str, word: &str) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(part_of_name) && !after.is_some_and(part_of_name)
    })
}

#[test]
fn the_pure_rooms_know_no_connection_do_no_io_and_read_no_clock() {
    let mut found = vec![];
    let sources = sources();
    let pure = sources
        .iter()
        .filter(|source| PURE.iter().any(|room| source.name.starts_with(room)));
    for source in pure {
        for (number, line) in (1..).zip(&source.lines) {
            for (word, allowed) in FOREIGN {
                if has_word(line, word) && !allowed.contains(&source.name.as_str()) {
                    found.push(format!("{}:{number}: {word}", source.name));
                }
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn nothing_is_unwrapped() {
    let mut found = vec![];
    for source in sources() {
        for (number, line) in (1..).zip(&source.lines) {
            if line.contains(".unwrap()") {
                found.push(format!("{}:{number}", source.name));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn distribute_is_implemented_for_named_types_alone() {
    // a blanket one would win over the routed method behind the pool's `Deref`
    for source in sources() {
        for line in &source.lines {
            let blanket = line.contains("impl<") && line.contains("Distribute for");
            assert!(!blanket, "{}: {line}", source.name);
        }
    }
}

#[test]
fn no_file_and_no_function_is_too_long() {
    let mut found = vec![];
    for source in sources() {
        if source.length > LINES_OF_A_FILE {
            found.push(format!("{}: {} lines", source.name, source.length));
        }
        for (number, length) in functions(&source.lines) {
            if length > LINES_OF_A_FUNCTION {
                found.push(format!(
                    "{}:{number}: a function of {length} lines",
                    source.name
                ));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Where each function begins, and its length; rustfmt closes it at the indent of its first line.
fn functions(lines: &[String]) -> Vec<(usize, usize)> {
    let begins = |line: &str| {
        let words = line.trim_start();
        let modifiers = [
            "pub",
            "pub(crate)",
            "pub(super)",
            "pub(in",
            "const",
            "unsafe",
            "async",
        ];
        let first = words.split(' ').find(|word| !modifiers.contains(word));
        first == Some("fn")
    };
    let starts = lines.iter().enumerate().filter(|(_, line)| begins(line));
    let ends = starts.filter_map(|(at, line)| {
        let indent = &line[..line.len() - line.trim_start().len()];
        let one_line = line.ends_with(['}', ';']);
        let end = format!("{indent}}}");
        let length = lines[at..].iter().position(|line| *line == end)?;
        Some((at + 1, if one_line { 1 } else { length + 1 }))
    });
    ends.collect()
}

/// The tests that a document names, as `module::function` in backticks.
fn named_tests(document: &str) -> Vec<(&str, &str)> {
    let is_name = |text: &str| {
        text.chars()
            .all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit())
    };
    let quoted = document.split('`').skip(1).step_by(2);
    let named = quoted.filter_map(|text| text.split_once("::"));
    named
        .filter(|(module, test)| is_name(module) && is_name(test))
        .collect()
}

#[test]
fn the_tests_that_documents_name_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let document = fs::read_to_string(root.join("docs/consistency.md")).unwrap();
    let named = named_tests(&document);
    assert!(named.len() > 45, "the table was read: {}", named.len());
    let mut files = vec![];
    for dir in ["src", "tests"] {
        collect(&root.join(dir), &mut files);
    }
    let mut missing = vec![];
    for (module, test) in named {
        let is_module = |file: &&PathBuf| is_in(file.strip_prefix(root).unwrap(), module);
        let has = |file: &PathBuf| {
            fs::read_to_string(file)
                .unwrap()
                .contains(&format!("fn {test}("))
        };
        if !files.iter().filter(is_module).any(has) {
            missing.push(format!("{module}::{test}"));
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// A file of tests that no module names is compiled by nobody, and misses nobody.
#[test]
fn every_file_of_tests_is_part_of_a_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut files = vec![];
    collect(&root, &mut files);
    let texts: Vec<_> = files
        .iter()
        .map(|file| fs::read_to_string(file).expect("a file of tests"))
        .collect();
    for file in &files {
        let stem = file.file_stem().and_then(|stem| stem.to_str());
        let stem = stem.expect("a name");
        let is_program = file.parent() == Some(&root) || matches!(stem, "main" | "mod");
        let names = [format!("mod {stem};"), format!("{stem}.rs\"")];
        let named = |text: &String| names.iter().any(|name| text.contains(name));
        let name = file.display();
        assert!(
            is_program || texts.iter().any(named),
            "{name} is in no program"
        );
    }
}
