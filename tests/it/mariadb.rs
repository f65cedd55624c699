use crate::kit::mariadb as backend;

#[path = "every/seed.rs"]
mod seed;
