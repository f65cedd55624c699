use crate::kit::mariadb as backend;
use crate::kit_pools::mariadb as pools;

#[path = "every/black_holes.rs"]
mod black_holes;
#[path = "every/outages.rs"]
mod outages;
#[path = "every/seed.rs"]
mod seed;
#[path = "every/storm.rs"]
mod storm;
#[path = "every/strategies.rs"]
mod strategies;
#[path = "every/waiting.rs"]
mod waiting;
