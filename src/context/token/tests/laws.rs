//! What holds for any token, and for any text.

use proptest::prelude::*;

use super::*;

fn any_position() -> impl Strategy<Value = Position> {
    prop_oneof![
        "postgres:[1-9][0-9]{0,18}:[1-9]:[1-9A-F]{0,3}0/[1-9A-F]{1,8}",
        "mariadb:0-1-[1-9][0-9]{0,18}(,5-1-[1-9])?",
        "mysql:3e11fa47-71ca-11e1-9e33-c80aa9429562:[1-9](:[a-z]{1,32}:[1-9]-1[0-9]{1,9})?",
        (1usize..1100).prop_map(long_position),
    ]
    .prop_filter_map("a position", |text| text.parse().ok())
    .prop_filter("of something", |position: &Position| !position.is_empty())
}

fn any_list(clusters: usize) -> impl Strategy<Value = Vec<Written>> {
    let position = || proptest::option::of(any_position());
    let viewed = (any::<u64>(), any::<u64>(), position()).prop_map(|(until, server, position)| {
        let server = ServerTag(server);
        Viewed {
            until: UnixMillis(until),
            floor: Floor { server, position },
        }
    });
    let viewed = proptest::option::of(viewed);
    let written = (0u64..40, any::<u64>(), position(), viewed);
    proptest::collection::vec(written, 0..=clusters).prop_map(|list| {
        let written = list
            .into_iter()
            .map(|(tag, until, position, viewed)| Written {
                cluster: ClusterTag(tag),
                until: UnixMillis(until),
                position,
                viewed,
            });
        merge(written.collect(), vec![])
    })
}

/// Texts from quite random to nearly right.
fn any_text() -> impl Strategy<Value = String> {
    let of_bytes = |bytes: Vec<u8>| of_body(&bytes);
    prop_oneof![
        any::<String>(),
        (0usize..3000).prop_map(|length| format!("1.{}", "A".repeat(length))),
        "[0-9]{0,6}[.~_-]?[A-Za-z0-9._~-]{0,60}",
        "1\\.[A-Za-z0-9_-]{0,90}(\\.[A-Za-z0-9_-]{48})?",
        proptest::collection::vec(any::<u8>(), 0..70).prop_map(of_bytes),
        (any_list(2), any::<prop::sample::Index>(), any::<char>()).prop_map(|(list, at, char)| {
            let mut text: Vec<char> = write(&list, None).unwrap_or_default().chars().collect();
            match at.index(text.len() + 1) {
                at if at < text.len() => text[at] = char,
                _ => text.push(char),
            }
            text.into_iter().collect()
        }),
        (any_list(2), any::<prop::sample::Index>()).prop_map(|(list, at)| {
            let text = write(&list, None).unwrap_or_default();
            text[..at.index(text.len() + 1)].to_owned()
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn every_meaning_has_one_text_and_none_sticks_longer_than_a_write(
        text in any_text(),
        now in any::<u64>(),
    ) {
        let sticky_for = Duration::from_secs(12);
        if let Read::Written(list) = read(&text, None) {
            for written in &list {
                prop_assert!(written.left(UnixMillis(now), sticky_for) <= sticky_for);
            }
            prop_assert_eq!(write(&list, None), Some(text));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn what_was_written_is_read_again_except_positions_that_did_not_fit(list in any_list(24)) {
        let Some(token) = write(&list, None) else {
            prop_assert!(list.is_empty());
            return Ok(());
        };
        prop_assert!(token.len() <= MAX_TOKEN && is_safe(&token), "{}", token);
        let Read::Written(found) = read(&token, None) else {
            panic!("{token}");
        };
        prop_assert_eq!(found.len(), list.len().min(MAX_CLUSTERS));
        for mut written in found {
            let known = list.iter().find(|known| known.cluster == written.cluster).unwrap();
            written.position = written.position.or(known.position.clone());
            match (&mut written.viewed, &known.viewed) {
                (Some(viewed), Some(known)) if viewed.floor.position.is_none() => {
                    viewed.floor.position = known.floor.position.clone();
                }
                (None, Some(known)) => written.viewed = Some(known.clone()),
                _ => {}
            }
            prop_assert_eq!(&written, known, "nothing else is there than was written");
        }
    }

    #[test]
    fn a_merge_takes_the_later_time_and_only_what_both_know(one in any_list(6), other in any_list(6)) {
        let both = merge(one.clone(), other.clone());
        prop_assert!(both.is_sorted_by(|one, other| one.cluster < other.cluster));
        for merged in &both {
            let in_list = |list: &[Written]| list.iter().find(|w| w.cluster == merged.cluster).cloned();
            let parts: Vec<_> = [in_list(&one), in_list(&other)].into_iter().flatten().collect();
            prop_assert_eq!(parts.iter().map(|part| part.until).max(), Some(merged.until));
            if let Some(position) = &merged.position {
                // one that was only read says nothing of what was written
                let wrote = |part: &Written| part.position.is_some() || part.until.0 > 0;
                for part in parts.into_iter().filter(wrote) {
                    // of two PostgreSQL timelines the higher one wins: the positions' own tests
                    let own = part.position.expect("known of both");
                    prop_assert_eq!(position.merge(&own), Some(position.clone()));
                }
            }
        }
        prop_assert_eq!(merge(both.clone(), one), both, "nothing is new the second time");
    }
}
