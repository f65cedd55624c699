//! One request of one client, as the process that serves it carries it out.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use diesel::connection::Connection;
use diesel::prelude::*;
use diesel::result::Error;
use diesel_routed::{Consistency, Context, Reason, Role, RoutedConnectionManager};
use rand::Rng;
use rand::rngs::StdRng;

use super::backend::*;
use super::rows::{
    Reading, Writing, by_statements, in_transaction, logged_of, newest_of, returning,
};
use crate::browser::{self, Cookies};
use crate::client::{Carried, Order, Outcome, Shown};
use crate::plan::{Hand, Moment, Monotonic, Plan, Read, Step, Write, dice};

type Handle = diesel::r2d2::PooledConnection<RoutedConnectionManager<Plain>>;

/// Where requests are served.
pub struct Site {
    pub consistency: Consistency,
    /// By how far reads are monotonic.
    pub pools: BTreeMap<Monotonic, Pool>,
}

struct Visit<'a> {
    order: &'a Order,
    consistency: Consistency,
    pool: &'a Pool,
    dice: StdRng,
    step: String,
    floor: i64,
    newest: i64,
    outcome: Outcome,
}

impl Site {
    /// Carries out a request.
    pub fn serve(&self, order: &Order) -> Outcome {
        let mut dice = dice(order.seed);
        let plan = Plan::draw(&mut dice, order.access);
        let visit = Visit {
            order,
            consistency: self.consistency,
            pool: &self.pools[&order.monotonic],
            dice,
            step: String::new(),
            floor: order.floor,
            newest: order.newest,
            outcome: Outcome {
                next: order.next,
                shown: order.shown,
                ..Outcome::default()
            },
        };
        match &order.carried {
            Carried::Token(token) => visit.by_token(token.as_deref(), &plan),
            Carried::Cookies(cookies) => visit.by_cookies(cookies, &plan),
        }
    }
}

impl Visit<'_> {
    fn by_token(mut self, token: Option<&str>, plan: &Plan) -> Outcome {
        let context = Context::resume(token.unwrap_or_default());
        let (token, handle) = context.run(|| self.follow(plan));
        self.outcome.token = match plan.moment {
            Moment::OfHandle => token,
            Moment::WhileHandleIsOut | Moment::AtEnd => context.token(),
        };
        drop(handle);
        self.outcome
    }

    /// As a web application does it that has the layer.
    fn by_cookies(mut self, cookies: &Cookies, plan: &Plan) -> Outcome {
        self.outcome.cookies = browser::request(cookies, || self.follow(plan).1);
        self.outcome
    }

    /// Returns the handle's token, or the handle if it outlives the request.
    fn follow(&mut self, plan: &Plan) -> (Option<String>, Option<Handle>) {
        let mut kept = self.handle();
        for (number, (step, hand)) in plan.steps.iter().enumerate() {
            self.step = format!("step {number} of {plan:?}");
            self.outcome.operations += 1;
            let done = match hand {
                Hand::Kept => self.take(&mut kept, *step),
                Hand::New => self.take(&mut self.handle(), *step),
            };
            match (done, step) {
                (Ok(()), _) => {}
                (Err(_), Step::Read(Read::Snapshot)) => self.outcome.cut += 1,
                (Err(error), _) => {
                    let error = format!("row {}, {}: {error}", self.order.row, self.step);
                    self.outcome.errors.push(error);
                }
            }
        }
        match plan.moment {
            Moment::OfHandle => (kept.token(), None),
            Moment::WhileHandleIsOut => (None, Some(kept)),
            Moment::AtEnd => (None, None),
        }
    }

    fn handle(&self) -> Handle {
        self.pool.get().expect("a handle is free")
    }

    fn take(&mut self, conn: &mut Conn, step: Step) -> QueryResult<()> {
        match step {
            Step::Write(way) => self.write(conn, way),
            Step::RollBack => self.roll_back(conn),
            Step::Read(way) => self.read(conn, way),
        }
    }

    fn write(&mut self, conn: &mut Conn, way: Write) -> QueryResult<()> {
        match way {
            Write::InTransaction => self.put(conn, in_transaction),
            Write::ByStatements => self.put(conn, by_statements),
            Write::Returning => self.put(conn, returning),
            Write::InBlock => conn.distributed(|conn| {
                let mut block = Shown::default();
                self.look(conn, &mut block)?;
                self.put(conn, in_transaction)?;
                self.look(conn, &mut block)
            }),
            Write::DuringBlock => conn.distributed(|conn| {
                let mut block = Shown::default();
                self.look(conn, &mut block)?;
                self.put(&mut self.handle(), by_statements)?;
                self.look(conn, &mut block)?;
                self.look(conn, &mut block)
            }),
            Write::OnAnotherThread => self.on_another_thread(|visit| {
                let mut conn = visit.handle();
                visit.put(&mut conn, in_transaction)
            }),
            Write::InContextWithin => {
                Context::new().run(|| self.put(&mut self.handle(), in_transaction))
            }
        }
    }

    fn read(&mut self, conn: &mut Conn, way: Read) -> QueryResult<()> {
        match way {
            Read::Block => conn.distributed(|conn| self.look_often(conn, &mut Shown::default())),
            Read::BlockWithin => conn.distributed(|conn| {
                let mut block = Shown::default();
                self.look(conn, &mut block)?;
                conn.distributed(|conn| self.look(conn, &mut block))?;
                self.look_often(conn, &mut block)
            }),
            Read::WithLimit => {
                let limited = match self.consistency {
                    Consistency::Session => Consistency::MaxLag(Duration::from_secs(50)),
                    other => other,
                };
                conn.distributed_with(limited, |conn| self.look_often(conn, &mut Shown::default()))
            }
            Read::Snapshot => {
                conn.read_only_transaction(|conn| self.look_often(conn, &mut Shown::default()))
            }
            Read::Outside => self.look(conn, &mut Shown::default()),
            Read::OnAnotherThread => self.on_another_thread(|visit| {
                let mut conn = visit.handle();
                conn.distributed(|conn| visit.look_often(conn, &mut Shown::default()))
            }),
        }
    }

    fn roll_back(&mut self, conn: &mut Conn) -> QueryResult<()> {
        let version = self.number();
        let row = self.order.row;
        let done = conn.transaction(|conn| {
            by_statements(conn, row, version)?;
            Err::<(), _>(Error::RollbackTransaction)
        });
        match done {
            Err(Error::RollbackTransaction) => Ok(()),
            done => done,
        }
    }

    /// Part of the same request on a thread of its own.
    fn on_another_thread<R: Send>(&mut self, f: impl FnOnce(&mut Self) -> R + Send) -> R {
        let context = Context::current().expect("every request has one");
        thread::scope(|scope| {
            let part = scope.spawn(|| context.run(|| f(self)));
            part.join().expect("no part of a request panics")
        })
    }

    /// Writes the next version and notes whether that was acknowledged.
    fn put(&mut self, conn: &mut Conn, write: Writing) -> QueryResult<()> {
        let version = self.number();
        self.newest = version;
        let done = write(conn, self.order.row, version);
        match done {
            Ok(()) => {
                self.floor = version;
                self.outcome.acknowledged.push(version);
            }
            Err(_) => self.outcome.unknown.push(version),
        }
        done
    }

    fn number(&mut self) -> i64 {
        self.outcome.next += 1;
        self.outcome.next - 1
    }

    fn look_often(&mut self, conn: &mut Conn, block: &mut Shown) -> QueryResult<()> {
        (0..self.dice.random_range(1..4)).try_for_each(|_| self.look(conn, block))
    }

    /// Reads a version and checks it against what was seen, and what was written.
    fn look(&mut self, conn: &mut Conn, block: &mut Shown) -> QueryResult<()> {
        let kind = self.dice.random_range(0..3);
        let (read, row): (Reading, _) = [
            (newest_of as Reading, self.order.row),
            (logged_of, self.order.row),
            (newest_of, self.order.neighbour),
        ][kind];
        let version = read(conn, row)?;
        let route = conn.last_route().expect("a statement has run");
        let on_replica = route.role == Role::Replica;
        self.outcome.reads += 1;
        self.outcome.reads_on_replicas += u64::from(on_replica);
        let counts = on_replica
            || self.order.monotonic == Monotonic::AcrossRequests
                && route.reason != Reason::PrimaryMode;
        let shown = &mut self.outcome.shown[kind];
        let seen = match counts {
            true => block[kind].max(*shown),
            false => block[kind],
        };
        block[kind] = version;
        if counts {
            *shown = version;
        }
        if let Some(wrong) = self.judge(kind, version, seen) {
            self.outcome.violations.push(format!(
                "{wrong}: {version} of row {row} on {} ({}) after {seen}, not {}..={}; {:?}, {}",
                route.node, route.reason, self.floor, self.newest, self.order, self.step,
            ));
        }
        Ok(())
    }

    fn judge(&self, kind: usize, version: i64, seen: i64) -> Option<&'static str> {
        let own = kind < 2;
        let floor = match own {
            true => self.floor,
            false => self.order.neighbour_floor,
        };
        if version < floor {
            Some("an own write is missed")
        } else if own && version > self.newest {
            Some("what was rolled back is there")
        } else if version < seen && self.order.monotonic != Monotonic::Nowhere {
            Some("a request went back in time")
        } else {
            None
        }
    }
}
