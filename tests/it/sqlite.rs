use crate::kit::sqlite as backend;

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

mod programs;

mod second_net;

mod transactions;
