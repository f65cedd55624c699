use crate::kit::postgres as backend;
use crate::kit_pools::postgres as pools;

#[path = "every.rs"]
mod checker;
