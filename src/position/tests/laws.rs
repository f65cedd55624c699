//! What holds for any positions.

use proptest::prelude::*;

use super::*;

/// Positions of one kind that are close enough to meet.
fn postgres_position() -> impl Strategy<Value = Position> {
    (0u64..2, 1u32..3, 0u64..20).prop_map(|(system, timeline, lsn)| postgres(system, timeline, lsn))
}

fn mariadb_position() -> impl Strategy<Value = Position> {
    proptest::collection::btree_map(0u32..3, (1u32..3, 0u64..6), 0..3).prop_map(|domains| {
        let gtids = domains
            .iter()
            .map(|(domain, (server, n))| format!("{domain}-{server}-{n}"));
        mariadb(&gtids.collect::<Vec<_>>().join(","))
    })
}

fn mysql_position() -> impl Strategy<Value = Position> {
    let tag = prop_oneof![Just(""), Just("blue:"), Just("red:")];
    let interval = (1u64..12, 0u64..4).prop_map(|(first, more)| (first, first + more));
    let member = (prop_oneof![Just(ONE), Just(TWO)], tag, interval);
    proptest::collection::vec(member, 0..7).prop_map(|members| {
        let members = members
            .iter()
            .map(|(uuid, tag, (first, last))| format!("{uuid}:{tag}{first}-{last}"));
        mysql(&members.collect::<Vec<_>>().join(","))
    })
}

fn position() -> impl Strategy<Value = Position> {
    prop_oneof![postgres_position(), mariadb_position(), mysql_position()]
}

/// Three of one kind, since others are merely incomparable.
fn three() -> impl Strategy<Value = [Position; 3]> {
    prop_oneof![
        proptest::array::uniform3(postgres_position()),
        proptest::array::uniform3(mariadb_position()),
        proptest::array::uniform3(mysql_position()),
    ]
}

fn yes(one: &Position, other: &Position) -> bool {
    one.covers(other) == Coverage::Yes
}

/// The same place, whichever server of a MariaDB domain wrote it last.
fn same_place(one: &Position, other: &Position) -> bool {
    match (one, other) {
        (Position::Mariadb(_), Position::Mariadb(_)) => yes(one, other) && yes(other, one),
        _ => one == other,
    }
}

proptest! {
    #[test]
    fn covering_is_a_partial_order([a, b, c] in three()) {
        prop_assert!(yes(&a, &a), "reflexive");
        prop_assert!(!(yes(&a, &b) && yes(&b, &a)) || same_place(&a, &b), "antisymmetric");
        prop_assert!(!(yes(&a, &b) && yes(&b, &c)) || yes(&a, &c), "transitive");
        let incomparable = |one: &Position, other: &Position| {
            one.covers(other) == Coverage::Incomparable
        };
        prop_assert_eq!(incomparable(&a, &b), incomparable(&b, &a));
    }

    #[test]
    fn a_merge_is_the_least_that_covers_both([a, b, c] in three()) {
        let merged = a.merge(&b);
        prop_assert_eq!(merged.is_some(), b.merge(&a).is_some());
        if a.covers(&b) != Coverage::Incomparable {
            let merged = merged.unwrap();
            prop_assert!(yes(&merged, &a) && yes(&merged, &b), "covers both");
            prop_assert_eq!(yes(&c, &merged), yes(&c, &a) && yes(&c, &b), "and no more");
        }
        prop_assert_eq!(a.merge(&a), Some(a));
    }

    #[test]
    fn what_is_subtracted_is_all_that_was_covered(a in mysql_position(), b in mysql_position()) {
        let left = a.subtract(&b);
        prop_assert!(yes(&a, &left), "nothing is invented");
        prop_assert_eq!(left.merge(&b), a.merge(&b), "nothing is lost");
        prop_assert_eq!(left.subtract(&b), left.clone(), "nothing of it is left");
        prop_assert_eq!(left.is_empty(), yes(&b, &a), "empty once caught up");
    }

    #[test]
    fn a_printed_position_parses_back(position in position()) {
        prop_assert_eq!(position.to_string().parse(), Ok(position));
    }

    #[test]
    fn any_lsn_parses_back(system: u64, timeline: u32, lsn: u64) {
        let position = postgres(system, timeline, lsn);
        prop_assert_eq!(position.to_string().parse(), Ok(position));
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in "\\PC*") {
        let _ = (text.parse::<Position>(), Position::parse_mysql(&text));
        let _ = (Position::parse_mariadb(&text), parse_lsn(&text));
        let _ = (parse_timeline(&text), parse_system(&text));
    }

    #[test]
    fn what_resembles_a_position_parses_to_itself_or_not_at_all(
        kind in "(postgres|mariadb|mysql):",
        rest in "([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})?[-0-9a-b:, /\n]{0,40}",
    ) {
        if let Ok(position) = (kind + &rest).parse::<Position>() {
            prop_assert_eq!(position.to_string().parse(), Ok(position));
        }
    }

    #[test]
    fn normalising_takes_off_a_header_once(insert in 0u64..(64 << 20)) {
        let segment = 1 << 20;
        let lsn = normalised_lsn(insert, segment);
        prop_assert!(lsn == insert || insert - lsn == 24 || insert - lsn == 40);
        prop_assert!(lsn == insert || lsn % 8192 == 0);
        prop_assert_eq!(normalised_lsn(lsn, segment), lsn);
    }
}
