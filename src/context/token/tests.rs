mod laws;
#[cfg(feature = "signed")]
mod signed;

use super::*;

const SECOND: u64 = 1000;

fn position(text: &str) -> Position {
    text.parse().unwrap()
}

fn written(cluster: &str, until: u64, text: Option<&str>) -> Written {
    Written {
        cluster: ClusterTag::of(cluster),
        until: UnixMillis(until),
        position: text.map(position),
        viewed: None,
    }
}

/// A position of MySQL that is about `bytes` long.
fn long_position(bytes: usize) -> String {
    let gaps = (1..).map(|n| format!(":{}", 1_000_000 + 2 * n));
    let uuid = "mysql:3e11fa47-71ca-11e1-9e33-c80aa9429562";
    uuid.chars()
        .chain(gaps.take(bytes / 8).collect::<String>().chars())
        .collect()
}

/// The token of version 1 that has this body.
fn of_body(body: &[u8]) -> String {
    format!("1.{}", BASE64.encode(body))
}

#[test]
fn a_token_is_short_and_looks_the_same_for_ever() {
    let list = [written(
        "shop",
        1_700_000_012_000,
        Some("postgres:7301234567890123456:2:0/7F01928"),
    )];
    let token = "1.RtxeGOKOJAkAAAGLz-WW4AAocG9zdGdyZXM6NzMwMTIzNDU2Nzg5MDEyMzQ1NjoyOjAvN0YwMTkyOA";
    assert_eq!(write(&list, None).as_deref(), Some(token));
    assert_eq!(read(token, None), Read::Written(list.into()));
    assert_eq!(write(&[], None), None, "nothing was written");
}

#[test]
fn what_does_not_fit_loses_its_position_and_sticks_by_time() {
    let (short, middle, long) = (long_position(80), long_position(400), long_position(900));
    let nothing = "mysql:".to_owned();
    let table = [
        (
            "all of them fit",
            vec![(1, &short), (2, &middle), (3, &short)],
            vec![true, true, true],
        ),
        (
            "the latest comes first",
            vec![(1, &middle), (2, &middle), (1, &short)],
            vec![false, true, true],
        ),
        (
            "a long one leaves room to others",
            vec![(3, &long), (2, &middle), (1, &short)],
            vec![false, true, true],
        ),
        ("alone, and too long", vec![(1, &long)], vec![false]),
        (
            "a primary without GTIDs has no position",
            vec![(1, &nothing)],
            vec![false],
        ),
    ];
    for (why, list, kept) in table {
        let list: Vec<_> = (0..)
            .zip(list)
            .map(|(n, (until, text))| Written {
                cluster: ClusterTag(n),
                ..written("", until, Some(text))
            })
            .collect();
        let token = write(&list, None).unwrap();
        assert!(token.len() <= MAX_TOKEN, "{why}: {} bytes", token.len());
        let Read::Written(read) = read(&token, None) else {
            panic!("{why}: {token}");
        };
        let positions: Vec<_> = read
            .iter()
            .map(|written| written.position.is_some())
            .collect();
        assert_eq!(positions, kept, "{why}");
    }
}

#[test]
fn of_too_many_clusters_the_latest_are_kept() {
    let list: Vec<_> = (0..20)
        .map(|n| written(&format!("cluster {n}"), n, Some("mariadb:0-100-9")))
        .collect();
    let Read::Written(read) = read(&write(&list, None).unwrap(), None) else {
        panic!("16 clusters fit");
    };
    let mut times: Vec<_> = read.iter().map(|written| written.until.0).collect();
    times.sort_unstable();
    assert_eq!(times, (4..20).collect::<Vec<_>>());
}

#[test]
fn garbage_says_nothing() {
    let good = write(&[written("shop", 5, Some("mariadb:0-100-9"))], None).unwrap();
    let body = BASE64.decode(&good[2..]).unwrap();
    let head = &body[..16];
    let text = |text: &str| {
        let length = u16::try_from(text.len()).unwrap().to_be_bytes();
        of_body(&[head, &length, text.as_bytes()].concat())
    };
    assert_eq!(text("mariadb:0-100-9"), good);
    let time_only = [head, &[0, 0]].concat();
    let table = [
        ("empty", String::new()),
        ("no body", "1.".to_owned()),
        ("no version", good[2..].to_owned()),
        ("version 0", good.replacen('1', "0", 1)),
        ("version 01", format!("0{good}")),
        ("version +2", format!("+2{}", &good[1..])),
        ("a version no number can be", format!("99999{}", &good[1..])),
        (
            "a newer version with white space",
            format!("2{} ", &good[1..]),
        ),
        ("a newer version without a body", "2.".to_owned()),
        ("padded", format!("{good}=")),
        ("in the other alphabet", good.replacen('.', ".+", 1)),
        ("white space", format!(" {good}")),
        ("cut", good[..good.len() - 2].to_owned()),
        ("a seal that is too short", format!("{good}.AAAA")),
        ("an empty seal", format!("{good}.")),
        (
            "longer than a token",
            format!("2.{}", "A".repeat(MAX_TOKEN)),
        ),
        ("a cluster twice", of_body(&time_only.repeat(2))),
        ("no position", text("shop")),
        ("a position of nothing", text("mysql:")),
        ("another way to write a position", text("mariadb:0-100-09")),
        ("a position in two lines", text("mariadb:0-100-9\n")),
        ("no text", of_body(&[head, &[0, 1, 0xff]].concat())),
        (
            "a length beyond the end",
            of_body(&[head, &[0xff, 0xff]].concat()),
        ),
    ];
    for (why, text) in table {
        assert_eq!(read(&text, None), Read::Nothing, "{why}: {text:?}");
    }
    let too_many: Vec<_> = (0..17_u64)
        .flat_map(|tag| [&tag.to_be_bytes(), &head[8..], &[0, 0]].concat())
        .collect();
    assert_eq!(
        read(&of_body(&too_many), None),
        Read::Nothing,
        "17 clusters"
    );
}

#[test]
fn what_a_newer_process_wrote_was_just_written() {
    for token in ["2.x", "2.anything~that-is_safe.to.carry", "1000.AAAA"] {
        assert_eq!(read(token, None), Read::JustWrote, "{token}");
    }
    let signed = format!("1.AAAA.{}", BASE64.encode([7; SEAL]));
    assert_eq!(
        read(&signed, None),
        Read::JustWrote,
        "by a key that is not here"
    );
}

#[test]
fn a_mark_is_left_for_no_longer_than_a_write_sticks() {
    let sticky_for = Duration::from_secs(12);
    let now = 1_000_000 * SECOND;
    let table = [
        (now + 12 * SECOND, 12_000, "written this moment"),
        (now + 5 * SECOND, 7_000, "with 2 s for clocks that differ"),
        (now, 2_000, "it may be over, or be a fast clock"),
        (now - 1_999, 1, "nearly over"),
        (now - 2_000, 0, "over"),
        (0, 0, "of long ago"),
        (now + 13 * SECOND, 12_000, "by a clock that is ahead"),
        (u64::MAX, 12_000, "hostile"),
    ];
    for (until, left, why) in table {
        let mark = written("shop", until, None);
        let found = mark.left(UnixMillis(now), sticky_for);
        assert_eq!(found, Duration::from_millis(left), "{why}");
    }
    let endless = written("shop", u64::MAX, None).left(UnixMillis(u64::MAX), Duration::MAX);
    assert_eq!(
        endless, CLOCK_SKEW,
        "no time is too large to be reckoned with"
    );
}

#[test]
fn two_requests_of_a_client_become_what_the_next_one_has_to_see() {
    let (early, late) = (Some("postgres:1:1:0/5"), Some("postgres:1:1:0/9"));
    let table = [
        ((5, early), (9, late), (9, late), "both have written"),
        (
            (9, early),
            (5, late),
            (9, late),
            "each says of itself what it can",
        ),
        ((5, early), (9, None), (9, None), "where one is unknown"),
        (
            (5, early),
            (9, Some("postgres:2:1:0/5")),
            (9, None),
            "another system",
        ),
        (
            (5, early),
            (9, Some("mariadb:0-1-1")),
            (9, None),
            "another kind of server",
        ),
        ((5, None), (9, None), (9, None), "by time alone"),
    ];
    for (one, other, both, why) in table {
        let list = |(until, text)| vec![written("shop", until, text)];
        assert_eq!(merge(list(one), list(other)), list(both), "{why}");
        assert_eq!(merge(list(other), list(one)), list(both), "{why}");
    }
    let (shop, blog) = (written("shop", 1, early), written("blog", 2, None));
    let mut all = vec![shop.clone(), blog.clone()];
    all.sort_by_key(|written| written.cluster);
    assert_eq!(
        merge(vec![shop], vec![blog]),
        all,
        "clusters are kept apart"
    );
}
