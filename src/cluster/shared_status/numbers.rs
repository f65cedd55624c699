//! The text of what is shared of a node.

use std::fmt;
use std::str;
use std::time::Duration;

use crate::node::Numbers;

/// Stands first in the text, and changes with its form.
const VERSION: &str = "1";

/// What stands for a number that is not known.
const UNKNOWN: &str = "-";

impl Numbers {
    /// Understands nothing but what [`Display`](fmt::Display) writes: others may write there, too.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let text = str::from_utf8(text).ok()?;
        let fields = text.strip_prefix(VERSION)?.strip_prefix(' ')?;
        let (load, lag) = fields.split_once(' ')?;
        let number = |field: &str| match field {
            UNKNOWN => Some(None),
            digits => digits.parse::<u32>().ok().map(Some),
        };
        let lag = number(lag)?.map(|millis| Duration::from_millis(millis.into()));
        let load = number(load)?;
        let numbers = Numbers { load, lag };
        // one form for each value: no signs and no zeros in front
        (numbers.to_string() == text).then_some(numbers)
    }
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |lag: Duration| u32::try_from(lag.as_millis()).unwrap_or(u32::MAX);
        f.write_str(VERSION)?;
        for number in [self.load, self.lag.map(millis)] {
            match number {
                Some(number) => write!(f, " {number}")?,
                None => write!(f, " {UNKNOWN}")?,
            }
        }
        Ok(())
    }
}
