use crate::kit::sqlite as backend;

#[path = "every/seed.rs"]
mod seed;
