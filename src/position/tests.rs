mod laws;

use super::*;

const ONE: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
const TWO: &str = "9f4d63c1-0a2b-11ee-be56-0242ac120002";

fn mysql(text: &str) -> Position {
    let text = text.replace("one", ONE).replace("two", TWO);
    Position::parse_mysql(&text).unwrap()
}

fn mariadb(text: &str) -> Position {
    Position::parse_mariadb(text).unwrap()
}

fn postgres(system: u64, timeline: u32, lsn: u64) -> Position {
    Position::Postgres(WalPosition {
        system,
        timeline,
        lsn,
    })
}

#[test]
fn what_a_server_prints_is_read_and_written_in_one_form() {
    let lists = [
        ("", ""),
        ("0-100-9", "0-100-9"),
        (" 5-100-1,\n0-100-9\n", "0-100-9,5-100-1"),
        (
            "4294967295-4294967295-18446744073709551615",
            "4294967295-4294967295-18446744073709551615",
        ),
    ];
    for (text, form) in lists {
        assert_eq!(mariadb(text).to_string(), format!("mariadb:{form}"));
    }
    let sets = [
        ("", ""),
        ("one:1", "one:1"),
        ("ONE:1-7:9:blue:1,\ntwo:23", "one:1-7:9:blue:1,two:23"),
        (" two : 5 - 9 : 1-4 ,, one:3 ", "one:3,two:1-9"),
        ("one:4:2:3-3:9:8-10", "one:2-4:8-10"),
        ("one:Blue:1:2:_red:3,one:7", "one:7:_red:3:blue:1-2"),
        ("one:1-9223372036854775807", "one:1-9223372036854775807"),
    ];
    for (text, form) in sets {
        let text = text.replace("ONE", &ONE.to_uppercase());
        let form = form.replace("one", ONE).replace("two", TWO);
        assert_eq!(mysql(&text).to_string(), format!("mysql:{form}"));
    }
}

#[test]
fn what_no_server_prints_is_refused() {
    let lists = [
        "0-100",
        "0-100-9-1",
        "0-100-",
        "+0-100-9",
        "0-100--9",
        "0-100-9,",
        ",",
        "0-100-9,0-101-8",
        "4294967296-1-1",
        "0-1-18446744073709551616",
        "0-1-\u{0663}",
    ];
    for text in lists {
        assert!(Position::parse_mariadb(text).is_err(), "{text:?}");
    }
    let sets = [
        "one",
        "one:",
        "one:blue",
        "one:1:blue",
        "one::1",
        "one:0",
        "one:2-1",
        "one:1-",
        "one:1-2-3",
        "one:-1",
        "one:9223372036854775808",
        "one:blue-ish:1",
        "one:\u{e9}:1",
        "one1:1",
        "3e11fa4771ca11e19e33c80aa9429562:1",
        "3e11fa47-71ca-11e1-9e33-c80aa942956g:1",
        "-e11fa47-71ca-11e1-9e33-c80aa9429562:1",
        ":1",
    ];
    for text in sets {
        let text = text.replace("one", ONE);
        assert!(Position::parse_mysql(&text).is_err(), "{text:?}");
    }
    let long_tag = format!("{ONE}:{}:1", "t".repeat(33));
    assert!(Position::parse_mysql(&long_tag).is_err(), "33 characters");
    let endless = format!("{ONE}{}", ":1".repeat(MAX_TEXT));
    assert!(
        Position::parse_mysql(&endless).is_err(),
        "longer than 64 kB"
    );
    let positions = [
        "",
        "postgres",
        "oracle:1",
        "postgres:1:2",
        "postgres:1:2:3",
        "postgres:1:2:0/+1",
        "postgres:1:2:0/",
        "postgres:1:2:/1",
        "postgres:1:2:0/1FFFFFFFF",
        "postgres:1:+2:0/1",
        "postgres:1:2:3:0/1",
    ];
    for text in positions {
        assert!(text.parse::<Position>().is_err(), "{text:?}");
    }
}

#[test]
fn a_postgres_primary_is_read_from_what_it_prints() {
    let read = |system, wal_file, lsn| {
        Position::parse_postgres_primary(system, wal_file, lsn, 16 << 20)
            .map(|position| position.to_string())
    };
    let file = "000000020000000000000007";
    assert_eq!(
        read("7301234567890123456", file, "0/7F01928").unwrap(),
        "postgres:7301234567890123456:2:0/7F01928"
    );
    assert_eq!(
        read("-1", file, "A/0").unwrap(),
        "postgres:18446744073709551615:2:A/0",
        "the system identifier is printed as a signed number"
    );
    assert_eq!(
        read("1", file, "0/6000028").unwrap(),
        "postgres:1:2:0/6000000",
        "the header of a segment is no record"
    );
    for wal_file in [
        "",
        "00000002",
        "0000000g0000000000000007",
        "\u{e9}00000200000000000000007",
    ] {
        assert!(read("1", wal_file, "0/1").is_err(), "{wal_file:?}");
    }
    let standby = Position::parse_postgres_standby("1", 2, "0/6000000").unwrap();
    assert_eq!(standby, postgres(1, 2, 0x600_0000), "taken as it is");
}

#[test]
fn an_insert_lsn_behind_a_page_header_is_the_start_of_the_page() {
    let segment = 16 << 20;
    let table = [
        (
            0x600_0028,
            0x600_0000,
            "an empty segment: its first header has 40 bytes",
        ),
        (
            0x601_6018,
            0x601_6000,
            "an empty page: its header has 24 bytes",
        ),
        (
            0x600_0018,
            0x600_0000,
            "24 is no record in the first page either",
        ),
        (
            0x600_8028,
            0x600_8028,
            "40 elsewhere is the end of a record",
        ),
        (
            0x600_0050,
            0x600_0050,
            "the end of the first record of a segment",
        ),
        (0x601_6000, 0x601_6000, "a page just filled"),
        (0x601_6019, 0x601_6019, "inside a page"),
        (0, 0, "the very beginning"),
    ];
    for (insert, expected, why) in table {
        assert_eq!(normalised_lsn(insert, segment), expected, "{why}");
    }
    assert_eq!(
        normalised_lsn(0x10_0028, 1 << 20),
        0x10_0000,
        "segments of 1 MB"
    );
    assert_eq!(
        normalised_lsn(0x600_0028, 0),
        0x600_0028,
        "an unknown segment size changes nothing"
    );
}

#[test]
fn a_node_covers_what_it_has_applied_of_the_same_history() {
    use Coverage::{Incomparable, No, Yes};
    let table = [
        (postgres(1, 1, 50), postgres(1, 1, 50), Yes),
        (postgres(1, 1, 49), postgres(1, 1, 50), No),
        (postgres(1, 1, 99), postgres(1, 2, 50), Incomparable),
        (postgres(1, 3, 99), postgres(1, 2, 50), Incomparable),
        (postgres(2, 1, 99), postgres(1, 1, 50), Incomparable),
        (mariadb("0-100-9"), mariadb("0-100-9"), Yes),
        (mariadb("0-101-9"), mariadb("0-100-8"), Yes),
        (mariadb("0-100-8"), mariadb("0-100-9"), No),
        (mariadb("0-100-9"), mariadb("0-100-9,5-100-1"), No),
        (mariadb("0-100-9,5-100-1"), mariadb("5-100-1"), Yes),
        (mariadb(""), mariadb("0-100-1"), No),
        (mariadb(""), mariadb(""), Yes),
        (mysql("one:1-7"), mysql("one:1-3:5"), Yes),
        (mysql("one:1-3:5-7"), mysql("one:1-7"), No),
        (mysql("one:1-3:5-7"), mysql("one:4"), No),
        (mysql("one:1-7"), mysql("one:8"), No),
        (mysql("one:1-7"), mysql("one:blue:1"), No),
        (mysql("one:1-7:blue:1-2"), mysql("one:blue:1"), Yes),
        (mysql("one:1-7"), mysql("two:1"), No),
        (mysql("one:1"), mariadb("0-100-9"), Incomparable),
        (mysql(""), mariadb(""), Incomparable),
        (mariadb("0-1-1"), postgres(1, 1, 1), Incomparable),
    ];
    for (node, wanted, expected) in table {
        assert_eq!(node.covers(&wanted), expected, "{node} covers {wanted}");
    }
}

#[test]
fn the_higher_timeline_wins_a_merge_and_strangers_do_not_merge() {
    let table = [
        (
            postgres(1, 1, 99),
            postgres(1, 2, 50),
            Some(postgres(1, 2, 50)),
        ),
        (
            postgres(1, 2, 70),
            postgres(1, 2, 50),
            Some(postgres(1, 2, 70)),
        ),
        (postgres(1, 1, 99), postgres(2, 1, 99), None),
        (postgres(1, 1, 99), mariadb("0-1-1"), None),
        (
            mariadb("0-1-5,1-1-1"),
            mariadb("0-2-6,3-1-1"),
            Some(mariadb("0-2-6,1-1-1,3-1-1")),
        ),
        (
            mysql("one:1-3"),
            mysql("one:4:7,two:1"),
            Some(mysql("one:1-4:7,two:1")),
        ),
    ];
    for (one, other, expected) in table {
        assert_eq!(one.merge(&other), expected, "{one} with {other}");
        assert_eq!(other.merge(&one), expected, "{other} with {one}");
    }
}

#[test]
fn what_is_everywhere_is_taken_out_of_a_mysql_set_only() {
    let table = [
        (mysql("one:1-9"), mysql("one:1-7"), mysql("one:8-9")),
        (mysql("one:1-9"), mysql("one:3:5-6"), mysql("one:1-2:4:7-9")),
        (mysql("one:1-3:5-9"), mysql("one:2-6"), mysql("one:1:7-9")),
        (mysql("one:1-9,two:1"), mysql("one:1-12"), mysql("two:1")),
        (mysql("one:4"), mysql("one:5-6"), mysql("one:4")),
        (mysql("one:1:blue:1"), mysql("one:1"), mysql("one:blue:1")),
        (mariadb("0-1-5"), mariadb("0-1-5"), mariadb("0-1-5")),
        (postgres(1, 1, 5), postgres(1, 1, 5), postgres(1, 1, 5)),
    ];
    for (set, known, left) in table {
        assert_eq!(set.subtract(&known), left, "{set} less {known}");
    }
}
