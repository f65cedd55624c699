//! Who is primary, as tables: a node a word, what follows a line.

use super::*;
use crate::report::Identity;

/// What a node says: `rw` or `ro`, whom it follows (`-` nobody, `>` somebody, `?` not known), and
/// its position; `silent` before it if that was long ago, `foreign` if it is of another system.
/// `none` never answered.
fn node(place: usize, text: &str) -> (Option<Report>, Voice) {
    let words: Vec<_> = text.split(' ').collect();
    let has = |word| words.contains(&word);
    let voice = match has("silent") || has("none") {
        true => Voice::Silent,
        false => Voice::Heard,
    };
    if has("none") {
        return (None, voice);
    }
    let position = words.last().and_then(|word| word.parse::<Position>().ok());
    let system = match (&position, has("foreign")) {
        (Some(Position::Postgres(_)), false) => "1",
        (_, true) => "2",
        _ => "",
    };
    let server = match has("same") {
        true => "0".to_owned(),
        false => place.to_string(),
    };
    let mut report = Report::new(Identity::new(system, &server, "start"));
    report.position = position;
    report.access = match has("ro") {
        true => Access::ReadOnly,
        false => Access::ReadWrite,
    };
    report.following = match (has("-"), has(">")) {
        (true, _) => Following::Nobody,
        (_, true) => Following::Somebody,
        _ => Following::Unknown,
    };
    (Some(report), voice)
}

fn tell(roles: &mut Roles, nodes: &[&str]) -> String {
    let said: Vec<_> = (0..)
        .zip(nodes)
        .map(|(place, text)| node(place, text))
        .collect();
    let now = Instant::now();
    let witnesses = said
        .iter()
        .enumerate()
        .map(|(place, (report, voice))| Witness {
            said: Some((now, now)),
            place,
            configured: match place {
                0 => Role::Primary,
                _ => Role::Replica,
            },
            report: report.as_ref(),
            voice: *voice,
        });
    let witnesses: Vec<_> = witnesses.collect();
    let (verdict, parts) = roles.tell(&witnesses);
    let part = |part: &Part| match part {
        Part::Primary => "primary",
        Part::Replica => "replica",
        Part::Refused(Refusal::ForeignSystem) => "foreign",
        Part::Refused(Refusal::Alias) => "alias",
        Part::Refused(Refusal::Stray) => "stray",
    };
    let parts: Vec<_> = parts.iter().map(part).collect();
    match verdict {
        Verdict::Primary(_) => parts.join(" "),
        Verdict::Conflict(one, other) => format!("conflict {one} {other}"),
        Verdict::Nobody => format!("nobody {}", parts.join(" ")),
    }
}

fn check(histories: &[&[(&[&str], &str)]]) {
    for (number, history) in histories.iter().enumerate() {
        let mut roles = Roles::default();
        for (step, (nodes, expected)) in history.iter().enumerate() {
            let told = tell(&mut roles, nodes);
            assert_eq!(told, *expected, "history {number}, step {step}: {nodes:?}");
        }
    }
}

#[test]
fn postgres() {
    let healthy: (&[&str], &str) = (
        &["rw - postgres:1:1:0/9", "ro > postgres:1:1:0/9"],
        "primary replica",
    );
    check(&[
        &[(&["none", "none"], "primary replica")],
        &[healthy],
        // the promoted standby is on a higher timeline, whoever answers
        &[
            healthy,
            (
                &["silent rw - postgres:1:1:0/9", "rw - postgres:1:2:0/9"],
                "stray primary",
            ),
            (
                &["rw - postgres:1:1:0/99", "rw - postgres:1:2:0/9"],
                "stray primary",
            ),
            // the old one must not take over when the new one falls silent
            (
                &["rw - postgres:1:1:0/99", "silent rw - postgres:1:2:0/9"],
                "stray primary",
            ),
            (
                &["ro > postgres:1:2:0/99", "rw - postgres:1:2:0/99"],
                "replica primary",
            ),
            // and back, by another promotion
            (
                &["rw - postgres:1:3:0/A0", "silent rw - postgres:1:2:0/99"],
                "primary stray",
            ),
        ],
        // a process that starts after the promotion
        &[(
            &["rw - postgres:1:1:0/99", "rw - postgres:1:2:0/9"],
            "stray primary",
        )],
        // two of one timeline: nobody knows
        &[(
            &["rw - postgres:1:1:0/99", "rw - postgres:1:1:0/9"],
            "conflict 0 1",
        )],
        // the primary has become a standby, and nobody has taken over yet
        &[
            healthy,
            (
                &["ro > postgres:1:1:0/9", "ro > postgres:1:1:0/9"],
                "nobody replica replica",
            ),
        ],
        // it refuses writes and follows nobody: it stays what it is
        &[
            healthy,
            (
                &["ro - postgres:1:1:0/9", "ro > postgres:1:1:0/9"],
                "primary replica",
            ),
        ],
        // the system is the primary's, whoever answers first
        &[
            (
                &["none", "foreign ro > postgres:2:1:0/9"],
                "primary replica",
            ),
            (
                &["rw - postgres:1:1:0/9", "foreign ro > postgres:2:1:0/9"],
                "primary foreign",
            ),
            (
                &[
                    "silent rw - postgres:1:1:0/9",
                    "foreign rw - postgres:2:7:0/9",
                ],
                "primary foreign",
            ),
        ],
        // one server, asked at two addresses
        &[(
            &["rw - postgres:1:1:0/9", "same rw - postgres:1:1:0/9"],
            "primary alias",
        )],
    ]);
}

#[test]
fn mariadb() {
    let healthy: (&[&str], &str) = (
        &["rw - mariadb:0-1-9", "ro > mariadb:0-1-9"],
        "primary replica",
    );
    check(&[
        &[
            healthy,
            (
                &["silent rw - mariadb:0-1-9", "rw - mariadb:0-1-8"],
                "stray primary",
            ),
            // it was deposed: whatever it has, it has to follow first
            (
                &["rw - mariadb:0-1-99", "rw - mariadb:0-2-10"],
                "stray primary",
            ),
            (
                &["rw - mariadb:0-1-99", "silent rw - mariadb:0-2-10"],
                "stray primary",
            ),
            (
                &["ro > mariadb:0-2-10", "rw - mariadb:0-2-10"],
                "replica primary",
            ),
            (
                &["rw - mariadb:0-2-10", "silent rw - mariadb:0-2-10"],
                "primary stray",
            ),
        ],
        // a replica that somebody left writable never becomes primary
        &[
            healthy,
            (
                &["silent rw - mariadb:0-1-9", "rw > mariadb:0-1-9"],
                "primary replica",
            ),
        ],
        // seen for the first time: the one that has all that the other has
        &[(
            &["rw - mariadb:0-1-9", "rw - mariadb:0-2-12"],
            "stray primary",
        )],
        &[(
            &["rw - mariadb:0-1-9", "rw - mariadb:0-1-9"],
            "conflict 0 1",
        )],
        &[(
            &["rw - mariadb:0-1-9,1-1-1", "rw - mariadb:0-1-12"],
            "conflict 0 1",
        )],
        // as long as both have the same, it goes on
        &[
            (&["rw - mariadb:0-1-9", "none"], "primary replica"),
            (
                &["rw - mariadb:0-1-9", "rw - mariadb:0-1-9"],
                "primary stray",
            ),
        ],
        // who may not see whether a server follows believes the configuration
        &[
            (
                &["rw ? mariadb:0-1-9", "ro ? mariadb:0-1-9"],
                "primary replica",
            ),
            (
                &["silent rw ? mariadb:0-1-9", "rw ? mariadb:0-1-9"],
                "primary replica",
            ),
        ],
    ]);
}

#[test]
fn a_file_may_be_its_own_replica() {
    check(&[&[(&["rw ?", "same rw ?"], "primary replica")]]);
}

#[test]
fn a_replica_that_is_the_primary_under_another_address_is_none() {
    // it is asked a moment later, when the position has moved
    check(&[&[
        (&["rw - postgres:1:1:0/9", "none"], "primary replica"),
        (
            &["rw - postgres:1:1:0/9", "same ro > postgres:1:1:0/A"],
            "primary alias",
        ),
    ]]);
}
