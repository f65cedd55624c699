use crate::kit::sqlite as backend;
use crate::kit_pools::sqlite as pools;

#[path = "every/seed.rs"]
mod seed;
#[path = "every/storm.rs"]
mod storm;
