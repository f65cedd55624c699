use crate::kit::postgres as backend;
use crate::kit_pools::postgres as pools;

#[path = "every/seed.rs"]
mod seed;
#[path = "every/storm.rs"]
mod storm;
