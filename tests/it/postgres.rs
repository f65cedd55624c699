use crate::kit::postgres as backend;

#[path = "every/seed.rs"]
mod seed;
