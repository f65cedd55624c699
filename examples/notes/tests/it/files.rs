//! The examples as they come: one command each, and nothing to install.

use std::process::Command;
use std::time::Duration;

use crate::client::Client;
use crate::process::Process;
use crate::support::wait_until;

const SOON: Duration = Duration::from_secs(20);

fn start(program: &str, arguments: &[&str], dir: &std::path::Path) -> Process {
    let mut command = Command::new(program);
    command.args(arguments).env("PORT", "0");
    command.env_remove("DATABASE_URL");
    Process::start(command, dir)
}

#[test]
fn each_example_runs_by_itself_and_replicates() {
    for program in [
        env!("CARGO_BIN_EXE_notes-axum"),
        env!("CARGO_BIN_EXE_notes-actix"),
        env!("CARGO_BIN_EXE_notes-rocket"),
    ] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut process = start(program, &[], dir.path());
        let home = format!("http://{}", process.address());
        let mut writer = Client::default();
        let answer = writer.post(&format!("{home}/notes"), "body=%3Cb%3Eown");
        assert_eq!(answer.status, 303, "{program}: {}", answer.body);
        let page = writer.get(&home).body;
        assert!(page.contains("<li>&lt;b>own</li>"), "{program}: {page}");
        wait_until("the replica has it for others", SOON, || {
            Client::default().get(&home).body.contains("own")
        });
    }
}

#[test]
fn the_worker_does_what_another_process_has_added() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let program = env!("CARGO_BIN_EXE_notes-jobs");
    assert!(
        start(program, &["add", "own"], dir.path())
            .ended()
            .success()
    );
    let mut worker = start(program, &["work"], dir.path());
    let line = worker.line(|line| Some(line.to_owned()));
    assert_eq!(line, "\"own\", from the primary");
}
