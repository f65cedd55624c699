use crate::kit::sqlite as backend;
use crate::kit_pools::sqlite as pools;

#[path = "every/outages.rs"]
mod outages;
#[path = "every/seed.rs"]
mod seed;

#[path = "every/second_handle.rs"]
mod second_handle;

#[path = "every/contexts.rs"]
mod contexts;

#[path = "every/tickets.rs"]
mod tickets;

#[path = "every/raw_transactions.rs"]
mod raw_transactions;

#[path = "every/read_only.rs"]
mod read_only;

#[path = "every/resend.rs"]
mod resend;
#[path = "every/storm.rs"]
mod storm;
#[path = "every/strategies.rs"]
mod strategies;
#[path = "every/waiting.rs"]
mod waiting;
