use crate::kit::mariadb as backend;
use crate::kit_pools::mariadb as pools;

#[path = "every/seed.rs"]
mod seed;
#[path = "every/storm.rs"]
mod storm;
