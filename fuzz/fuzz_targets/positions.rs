//! What servers print as a position, and what else is taken for one.
#![no_main]

use diesel_routed::{Coverage, Position};
use libfuzzer_sys::fuzz_target;

/// Reads and prints it; the text printed has to be read as the same.
fn read(text: &str) -> Option<Position> {
    let position: Position = text.parse().ok()?;
    assert_eq!(position.to_string().parse(), Ok(position.clone()), "{text:?}");
    Some(position)
}

fuzz_target!(|text: &str| {
    let (one, other) = text.split_once('|').unwrap_or((text, ""));
    for kind in ["", "postgres:", "mariadb:", "mysql:"] {
        let Some(one) = read(&format!("{kind}{one}")) else {
            continue;
        };
        assert_eq!(one.covers(&one), Coverage::Yes);
        let Some(other) = read(&format!("{kind}{other}")) else {
            continue;
        };
        let Some(both) = one.merge(&other) else {
            assert_eq!(one.covers(&other), Coverage::Incomparable);
            continue;
        };
        assert!(other.merge(&one).is_some());
        if one.covers(&other) != Coverage::Incomparable {
            assert_eq!(both.covers(&one), Coverage::Yes);
            assert_eq!(both.covers(&other), Coverage::Yes);
            assert_ne!(one.subtract(&other).covers(&other), Coverage::Incomparable);
        }
    }
});
