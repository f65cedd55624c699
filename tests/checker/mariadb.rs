use crate::kit::mariadb as backend;
use crate::kit_pools::mariadb as pools;

#[path = "every.rs"]
mod checker;
