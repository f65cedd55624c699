use std::time::Duration;

use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

use super::super::{effective_weight, share_of_slow};

const fn ms(millis: u64) -> Option<Duration> {
    Some(Duration::from_millis(millis))
}

#[test]
fn lag_and_slow_start_take_from_the_weight() {
    const MAX: u32 = u32::MAX;
    const MAX_LAG: Option<Duration> = ms(5_000);
    for (weight, factor, lag, max_lag, expected, why) in [
        (1, 1.0, None, MAX_LAG, 1_000, "nothing is known against it"),
        (3, 1.0, ms(0), MAX_LAG, 3_000, "it lags not at all"),
        (1, 1.0, ms(2_500), MAX_LAG, 1_000, "half of max_lag is fine"),
        (1, 1.0, ms(3_750), MAX_LAG, 750, "half-way to a half"),
        (1, 1.0, ms(5_000), MAX_LAG, 500, "as late as it may be"),
        (1, 1.0, ms(60_000), MAX_LAG, 500, "later than it may be"),
        (1, 1.0, ms(60_000), None, 1_000, "any lag is accepted"),
        (1, 1.0, ms(0), ms(0), 1_000, "no lag where none is accepted"),
        (1, 1.0, ms(1), ms(0), 500, "some lag where none is accepted"),
        (1, 0.1, ms(0), MAX_LAG, 100, "it has just come back"),
        (2, 0.1, ms(5_000), MAX_LAG, 100, "and is late again"),
        (0, 1.0, ms(0), MAX_LAG, 0, "drained stays drained"),
        (1, 0.0, ms(0), MAX_LAG, 1, "nothing else becomes 0"),
        (1, -1.0, ms(0), MAX_LAG, 1, "by no factor"),
        (1, f64::NAN, ms(0), MAX_LAG, 1, "nor by what is no number"),
        (MAX, 1.0, ms(0), MAX_LAG, MAX, "and nothing overflows"),
    ] {
        let seen = effective_weight(weight, factor, lag, max_lag);
        assert_eq!(
            seen, expected,
            "{why}: {weight} {factor} {lag:?} {max_lag:?}"
        );
    }
}

proptest! {
    #[test]
    fn more_lag_never_means_more_weight_and_no_step_is_a_jump(
        weight in 1..1_000u32,
        factor in 0.1..=1.0f64,
        lag in 0..20_000u64,
        step in 0..1_000u64,
        max_lag in 1_000..20_000u64,
    ) {
        let at = |lag| effective_weight(weight, factor, ms(lag), ms(max_lag));
        let (earlier, later) = (at(lag), at(lag + step));
        prop_assert!(later <= earlier, "{later} of a lag that is longer, {earlier}");
        // a half is lost over half of max_lag
        let slope = f64::from(weight) * 1_000.0 * factor * step as f64 / max_lag as f64;
        let lost = f64::from(earlier - later);
        prop_assert!(lost <= slope + 1.0, "{lost} lost in a step of {step} ms");
        prop_assert!(later as f64 >= f64::from(weight) * 500.0 * factor - 1.0);
    }

    #[test]
    fn only_weight_0_becomes_0(
        weight: u32,
        factor: f64,
        lag: Option<Duration>,
        max_lag: Option<Duration>,
    ) {
        prop_assert_eq!(effective_weight(weight, factor, lag, max_lag) == 0, weight == 0);
    }
}

#[test]
fn a_slow_replica_gets_less_but_is_not_forgotten() {
    // (its own average, the fastest one's, its share), times in milliseconds
    let table = [
        (10.0, 10.0, 1.0),
        (14.0, 10.0, 1.0),
        (15.0, 10.0, 1.0),
        (30.0, 10.0, 0.5),
        (60.0, 10.0, 0.25),
        (10_000.0, 10.0, 0.1),
        (0.0, 0.0, 1.0),
        (1.0, 0.0, 0.1),
    ];
    for (own, fastest, share) in table {
        let seen = share_of_slow(own, fastest);
        assert_eq!(seen, share, "{own} ms beside {fastest} ms");
    }
}
