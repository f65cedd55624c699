use crate::kit::mariadb as backend;

#[path = "every/seed.rs"]
mod seed;

#[path = "every/second_handle.rs"]
mod second_handle;

#[path = "every/contexts.rs"]
mod contexts;

#[path = "every/tickets.rs"]
mod tickets;

mod failures;

#[path = "every/raw_transactions.rs"]
mod raw_transactions;

#[path = "every/read_only.rs"]
mod read_only;

mod deadlock;

mod second_net;

#[path = "every/resend.rs"]
mod resend;

mod cut;

#[path = "every/loss.rs"]
mod loss;
