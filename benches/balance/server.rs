//! A replica's server: some slots that work, and a queue.

use std::collections::VecDeque;

use super::process::Request;
use super::scenario::Plan;

/// A read on its way through a server.
#[derive(Clone, Copy)]
pub struct Job {
    pub request: Request,
    /// When it was sent.
    pub sent: f64,
}

pub struct Server {
    pub alive: bool,
    slots: Vec<Option<Job>>,
    queue: VecDeque<Job>,
    /// How often it has died: what was begun before ends no more.
    pub deaths: u32,
}

impl Server {
    pub fn new(plan: Plan) -> Self {
        Server {
            alive: true,
            slots: vec![None; plan.slots],
            queue: VecDeque::new(),
            deaths: 0,
        }
    }

    /// What it works on, and what waits.
    pub fn load(&self) -> u32 {
        let busy = self.slots.iter().flatten().count();
        (busy + self.queue.len()) as u32
    }

    /// Takes in a read; the slot that begins it, if one is free.
    pub fn accept(&mut self, job: Job) -> Option<usize> {
        let free = self.slots.iter().position(Option::is_none);
        match free {
            Some(slot) => self.slots[slot] = Some(job),
            None => self.queue.push_back(job),
        }
        free
    }

    /// Ends what a slot works on: that, and what the slot begins then.
    pub fn end(&mut self, slot: usize) -> (Job, Option<Job>) {
        let next = self.queue.pop_front();
        let done = std::mem::replace(&mut self.slots[slot], next);
        (done.expect("only a busy slot ends"), next)
    }

    /// Dies; returns the reads that are lost.
    pub fn die(&mut self) -> Vec<Job> {
        self.alive = false;
        self.deaths += 1;
        let begun = self.slots.iter_mut().filter_map(Option::take);
        begun.chain(self.queue.drain(..)).collect()
    }
}
