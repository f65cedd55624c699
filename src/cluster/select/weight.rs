//! What a replica's lag, its speed and its return from the dead make of its weight.

use std::time::Duration;

/// What an undisturbed weight of 1 becomes, so that fractions of it survive in an integer.
const SCALE: f64 = 1_000.0;

/// What is left of the weight of a replica that is as late as it may be.
const LATEST_SHARE: f64 = 0.5;

/// By how much replicas may differ in speed before one counts as slow: what they are given to do differs, too.
const TOLERANCE: f64 = 1.5;

/// What the slowest replica keeps, so that it is noticed when it is fast again.
const SLOWEST_SHARE: f64 = 0.1;

/// The part of its weight that a replica gets of which reads take so long, in seconds, beside the
/// fastest.
///
/// Two choices see only what this process has under way, which is little where there are many
/// processes: by this they evade a replica that is slower than its weight says, too. See the
/// simulation in `benches/balance`.
pub(crate) fn share_of_slow(own: f64, fastest: f64) -> f64 {
    match own <= fastest {
        true => 1.0,
        false => (TOLERANCE * fastest / own).clamp(SLOWEST_SHARE, 1.0),
    }
}

/// Returns the weight by which a replica is chosen now, which means something only beside those
/// of the others.
///
/// `factor` is the part, above 0 and at most 1, that it gets as it warms up. 0 stays 0, and
/// nothing else becomes 0: a replica that may serve is never starved. Weights above four million
/// are taken for four million.
pub(crate) fn effective_weight(
    weight: u32,
    factor: f64,
    lag: Option<Duration>,
    max_lag: Option<Duration>,
) -> u32 {
    if weight == 0 {
        return 0;
    }
    let share = factor * share_of_late(lag, max_lag);
    // the conversion ends at the largest integer instead of wrapping
    let scaled = (f64::from(weight) * SCALE * share).round() as u32;
    scaled.max(1)
}

/// Full for a lag of up to half of `max_lag`, which is mostly the coarseness of the measurement,
/// then down in a straight line: a replica that falls behind is relieved before it has to be
/// taken out as a whole, and the others don't get all of its reads at once.
fn share_of_late(lag: Option<Duration>, max_lag: Option<Duration>) -> f64 {
    let (Some(lag), Some(max_lag)) = (lag, max_lag) else {
        return 1.0;
    };
    let tolerated = max_lag / 2;
    if lag <= tolerated {
        return 1.0;
    }
    if lag >= max_lag {
        return LATEST_SHARE;
    }
    let beyond = (lag - tolerated).div_duration_f64(max_lag - tolerated);
    1.0 - (1.0 - LATEST_SHARE) * beyond
}
