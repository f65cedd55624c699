use Following::{Nobody, Somebody, Unknown};

use super::*;

#[test]
fn the_longest_lag_counts_and_what_does_not_run_is_unknown() {
    let of = |seconds| ReportedLag::Of(Duration::from_secs(seconds));
    type Row<'a> = (&'a str, &'a str, Option<i64>);
    let cases: [(&[Row<'_>], ReportedLag); 8] = [
        (&[], ReportedLag::Unsupported),
        (&[("Yes", "Yes", Some(3))], of(3)),
        (&[("Yes", "Yes", Some(-1))], of(0)),
        (&[("Yes", "Yes", None)], ReportedLag::Unknown),
        (&[("Connecting", "Yes", Some(0))], ReportedLag::Unknown),
        (&[("Yes", "No", Some(0))], ReportedLag::Unknown),
        (&[("Yes", "Yes", Some(3)), ("Yes", "Yes", Some(9))], of(9)),
        (
            &[("Yes", "Yes", Some(3)), ("No", "Yes", Some(0))],
            ReportedLag::Unknown,
        ),
    ];
    for (rows, expected) in cases {
        let channel = |&(receives, applies, seconds_behind): &Row<'_>| Channel {
            receives: receives.to_owned(),
            applies: applies.to_owned(),
            seconds_behind,
        };
        let channels: Vec<Channel> = rows.iter().map(channel).collect();
        assert_eq!(Channels::of(&channels).lag, expected, "{rows:?}");
    }
}

#[test]
#[rustfmt::skip]
fn a_replica_is_where_it_has_applied_and_others_where_they_have_executed() {
    const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7";
    let mysql = format!("mysql:{UUID}");
    for (is_mariadb, following, read_only, applied, executed, expected) in [
        (true, Somebody, true, "0-1-8", "0-1-8,5-2-1", "mariadb:0-1-8"),
        (true, Somebody, false, "0-1-8", "0-1-8,5-2-1", "mariadb:0-1-8"),
        (true, Somebody, true, "", "0-1-8", ""),
        (true, Nobody, false, "0-1-8", "0-1-9", "mariadb:0-1-9"),
        (true, Nobody, true, "0-1-8", "0-1-9", "mariadb:0-1-9"),
        (true, Nobody, false, "", "", ""),
        (true, Unknown, true, "0-1-8", "0-1-9", "mariadb:0-1-8"),
        (true, Unknown, false, "0-1-8", "0-1-9", "mariadb:0-1-9"),
        (true, Unknown, true, "", "0-1-9", "mariadb:0-1-9"),
        (true, Nobody, false, "", "no position", ""),
        (false, Somebody, true, "", UUID, mysql.as_str()),
        (false, Nobody, false, "", UUID, mysql.as_str()),
        (false, Unknown, true, "", UUID, mysql.as_str()),
        (false, Nobody, false, "", "", ""),
    ] {
        let standing = Standing {
            lineage: String::new(),
            is_mariadb,
            read_only,
            server: String::new(),
            run: String::new(),
            applied: applied.to_owned(),
            executed: executed.to_owned(),
        };
        let position = standing.position(following).map(|position| position.to_string());
        let case = format!("{is_mariadb}, {following:?}, {read_only}, {applied:?}, {executed:?}");
        assert_eq!(position.unwrap_or_default(), expected, "{case}");
    }
}
