//! One request of one client, as the process that serves it carries it out.

use std::thread;
use std::time::Duration;

use diesel::connection::Connection;
use diesel::prelude::*;
use diesel::result::Error;
use diesel_routed::{Consistency, Context, Role};
use rand::Rng;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

use super::Handle;
use super::backend::*;
use super::plan::{Access, Hand, Moment, Plan, Read, Step, Write, dice};

diesel::table! {
    /// The newest version of each client.
    checked (client) {
        client -> Integer,
        version -> BigInt,
    }
}

diesel::table! {
    /// Every version that was ever written.
    checked_log (client, version) {
        client -> Integer,
        version -> BigInt,
    }
}

/// A request and what its client knows.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    pub client: i32,
    pub seed: u64,
    pub access: Access,
    pub token: Option<String>,
    /// It must see this version, or a later one.
    pub floor: i64,
    /// No later one than this was ever written.
    pub newest: i64,
    /// The first number that no write was given yet.
    pub next: i64,
}

/// What came of a request.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    pub token: Option<String>,
    pub acknowledged: Vec<i64>,
    /// Their writes failed, and may have left something.
    pub unknown: Vec<i64>,
    pub next: i64,
    pub operations: u64,
    pub reads: u64,
    pub reads_on_replicas: u64,
    /// Transactions on a replica that was killed.
    pub cut: u64,
    pub violations: Vec<String>,
    pub errors: Vec<String>,
}

/// Where requests are served.
pub struct Site {
    pub pool: Pool,
    pub consistency: Consistency,
}

/// The latest versions that a block has seen, by what it looked at.
#[derive(Default)]
struct Seen([i64; 3]);

struct Visit<'a> {
    site: &'a Site,
    client: i32,
    /// Somebody else's rows are watched, too.
    neighbour: i32,
    dice: StdRng,
    context: Context,
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
        let mut visit = Visit {
            site: self,
            client: order.client,
            neighbour: (order.client + 1) % super::CLIENTS,
            dice,
            context: Context::resume(order.token.as_deref().unwrap_or_default()),
            step: String::new(),
            floor: order.floor,
            newest: order.newest,
            outcome: Outcome {
                next: order.next,
                ..Outcome::default()
            },
        };
        visit.context.clone().run(|| visit.follow(&plan));
        visit.outcome
    }
}

impl Visit<'_> {
    fn follow(&mut self, plan: &Plan) {
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
                    let error = format!("client {}, {}: {error}", self.client, self.step);
                    self.outcome.errors.push(error);
                }
            }
        }
        self.outcome.token = match plan.moment {
            Moment::OfHandle => kept.token(),
            Moment::WhileHandleIsOut => self.context.token(),
            Moment::AtEnd => {
                drop(kept);
                self.context.token()
            }
        };
    }

    fn handle(&self) -> Handle {
        self.site.pool.get().expect("a handle is free")
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
                let mut seen = Seen::default();
                self.look(conn, &mut seen)?;
                self.put(conn, in_transaction)?;
                self.look(conn, &mut seen)
            }),
            Write::DuringBlock => conn.distributed(|conn| {
                let mut seen = Seen::default();
                self.look(conn, &mut seen)?;
                self.put(&mut self.handle(), by_statements)?;
                self.look(conn, &mut seen)?;
                self.look(conn, &mut seen)
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
            Read::Block => conn.distributed(|conn| self.look_often(conn, &mut Seen::default())),
            Read::BlockWithin => conn.distributed(|conn| {
                let mut seen = Seen::default();
                self.look(conn, &mut seen)?;
                conn.distributed(|conn| self.look(conn, &mut seen))?;
                self.look_often(conn, &mut seen)
            }),
            Read::WithLimit => {
                let limited = match self.site.consistency {
                    Consistency::Session => Consistency::MaxLag(Duration::from_secs(50)),
                    other => other,
                };
                conn.distributed_with(limited, |conn| self.look_often(conn, &mut Seen::default()))
            }
            Read::Snapshot => {
                conn.read_only_transaction(|conn| self.look_often(conn, &mut Seen::default()))
            }
            Read::OnAnotherThread => self.on_another_thread(|visit| {
                let mut conn = visit.handle();
                conn.distributed(|conn| visit.look_often(conn, &mut Seen::default()))
            }),
        }
    }

    fn roll_back(&mut self, conn: &mut Conn) -> QueryResult<()> {
        let version = self.number();
        let client = self.client;
        let done = conn.transaction(|conn| {
            by_statements(conn, client, version)?;
            Err::<(), _>(Error::RollbackTransaction)
        });
        match done {
            Err(Error::RollbackTransaction) => Ok(()),
            done => done,
        }
    }

    /// Part of the same request on a thread of its own.
    fn on_another_thread<R: Send>(&mut self, f: impl FnOnce(&mut Self) -> R + Send) -> R {
        let context = self.context.clone();
        thread::scope(|scope| {
            let part = scope.spawn(|| context.run(|| f(self)));
            part.join().expect("no part of a request panics")
        })
    }

    /// Writes the next version and notes whether that was acknowledged.
    fn put(
        &mut self,
        conn: &mut Conn,
        write: fn(&mut Conn, i32, i64) -> QueryResult<()>,
    ) -> QueryResult<()> {
        let version = self.number();
        self.newest = version;
        let done = write(conn, self.client, version);
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

    fn look_often(&mut self, conn: &mut Conn, seen: &mut Seen) -> QueryResult<()> {
        (0..self.dice.random_range(1..4)).try_for_each(|_| self.look(conn, seen))
    }

    /// Reads a version and checks it against what was seen, and what was written.
    fn look(&mut self, conn: &mut Conn, seen: &mut Seen) -> QueryResult<()> {
        let kind = self.dice.random_range(0..3);
        let version = match kind {
            0 => newest_of(conn, self.client)?,
            1 => logged_of(conn, self.client)?,
            _ => newest_of(conn, self.neighbour)?,
        };
        let route = conn.last_route().expect("a statement has run");
        self.outcome.reads += 1;
        self.outcome.reads_on_replicas += u64::from(route.role == Role::Replica);
        let own = kind < 2;
        let before = std::mem::replace(&mut seen.0[kind], version);
        let wrong = if own && version < self.floor {
            "an own write is missed"
        } else if own && version > self.newest {
            "what was rolled back is there"
        } else if version < before {
            "a block went back in time"
        } else {
            return Ok(());
        };
        self.outcome.violations.push(format!(
            "{wrong}: client {} saw {version} on {} ({}) after {before}, not {}..={}; {}",
            self.client, route.node, route.reason, self.floor, self.newest, self.step,
        ));
        Ok(())
    }
}

fn in_transaction(conn: &mut Conn, client: i32, version: i64) -> QueryResult<()> {
    conn.transaction(|conn| by_statements(conn, client, version))
}

fn by_statements(conn: &mut Conn, client: i32, version: i64) -> QueryResult<()> {
    set(conn, client, version)?;
    diesel::insert_into(checked_log::table)
        .values((
            checked_log::client.eq(client),
            checked_log::version.eq(version),
        ))
        .execute(conn)
        .map(drop)
}

/// Loaded, as a write that returns rows is. Diesel cannot have MariaDB return any.
fn returning(conn: &mut Conn, client: i32, version: i64) -> QueryResult<()> {
    if NAME != "postgres" {
        return by_statements(conn, client, version);
    }
    #[derive(QueryableByName)]
    struct Written {
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        version: i64,
    }
    let insert = format!("INSERT INTO checked_log VALUES ({client}, {version}) RETURNING version");
    let written: Written = diesel::sql_query(insert).get_result(conn)?;
    assert_eq!(written.version, version, "as it was written");
    set(conn, client, version)
}

fn set(conn: &mut Conn, client: i32, version: i64) -> QueryResult<()> {
    let row = checked::table.find(client);
    let changed = diesel::update(row)
        .set(checked::version.eq(version))
        .execute(conn)?;
    assert_eq!(changed, 1, "every client has a row");
    Ok(())
}

fn newest_of(conn: &mut Conn, client: i32) -> QueryResult<i64> {
    checked::table
        .find(client)
        .select(checked::version)
        .first(conn)
}

fn logged_of(conn: &mut Conn, client: i32) -> QueryResult<i64> {
    checked_log::table
        .filter(checked_log::client.eq(client))
        .select(diesel::dsl::max(checked_log::version))
        .first::<Option<i64>>(conn)
        .map(Option::unwrap_or_default)
}
