//! What a session of MySQL can hold.

use crate::left_behind_mariadb::{Row, rows};

pub use crate::left_behind_mariadb::UNBLOCKED;

pub const LEFT_BEHIND: &[Row] = rows!(isolation: "transaction_isolation");
