//! Random programs on two handles against a simple model. The replica is empty and stays so:
//! whatever reads there by mistake misses what was written.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::LazyLock;

use diesel::prelude::*;
use diesel::result::Error;
use diesel_routed::{Context, Reason, RoutedConnectionManager, RoutedError};
use proptest::prelude::*;

use crate::kit::sqlite::*;

#[derive(Debug, Clone)]
enum Op {
    Read,
    Write,
    FailingWrite,
    Panic,
    Block(Vec<Op>),
    Primary(Vec<Op>),
    WithoutSticking(Vec<Op>),
    Transaction(Ending, Vec<Op>),
    ReadOnly(Vec<Op>),
    /// In a context of its own.
    InContext(Vec<Op>),
    /// On the other handle.
    OnTheOther(Vec<Op>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Commit,
    Rollback,
}

fn op() -> impl Strategy<Value = Op> {
    let leaf = prop_oneof![
        8 => Just(Op::Read),
        6 => Just(Op::Write),
        2 => Just(Op::FailingWrite),
        1 => Just(Op::Panic),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        let ops = || proptest::collection::vec(inner.clone(), 1..5);
        let ending = prop_oneof![Just(Ending::Commit), Just(Ending::Rollback)];
        prop_oneof![
            4 => ops().prop_map(Op::Block),
            1 => ops().prop_map(Op::Primary),
            1 => ops().prop_map(Op::WithoutSticking),
            2 => (ending, ops()).prop_map(|(ending, ops)| Op::Transaction(ending, ops)),
            1 => ops().prop_map(Op::ReadOnly),
            2 => ops().prop_map(Op::InContext),
            2 => ops().prop_map(Op::OnTheOther),
        ]
    })
}

/// Whose writes a read has to see: those of a context, or of a handle outside any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Whose {
    Context(usize),
    Handle(usize),
}

/// A write in a transaction, and who will have to see it once it is committed.
struct Pending {
    body: String,
    seen_by: Option<Whose>,
}

/// What the model knows of a handle.
#[derive(Default)]
struct Side {
    /// The open blocks; whether each has read from the primary.
    blocks: Vec<bool>,
    forced: bool,
    unmarked: bool,
    transactions: Vec<Vec<Pending>>,
    read_only: bool,
}

impl Side {
    fn in_transaction(&self) -> bool {
        self.read_only || !self.transactions.is_empty()
    }
}

#[derive(Default)]
struct Model {
    written: usize,
    contexts: Vec<usize>,
    entered: usize,
    committed: Vec<String>,
    must_see: HashMap<Whose, Vec<String>>,
    sides: [Side; 2],
}

/// A panic of the program, as opposed to one of an assertion.
struct Expected;
/// The program panics its way out.
struct Panicked;
type Outcome = Result<(), Panicked>;

/// Runs what may panic on purpose.
fn caught<R>(f: impl FnOnce() -> R) -> Result<R, Panicked> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|panic| match panic.is::<Expected>() {
        true => Panicked,
        false => resume_unwind(panic),
    })
}

fn go_on(outcome: Outcome) {
    if outcome.is_err() {
        resume_unwind(Box::new(Expected));
    }
}

impl Model {
    fn whose(&self, at: usize) -> Whose {
        let context = self.contexts.last().copied();
        context.map_or(Whose::Handle(at), Whose::Context)
    }

    fn run(&mut self, ops: &[Op], at: usize, conn: &mut Conn, other: &mut Conn) -> Outcome {
        ops.iter().try_for_each(|op| self.step(op, at, conn, other))
    }

    fn step(&mut self, op: &Op, at: usize, conn: &mut Conn, other: &mut Conn) -> Outcome {
        match op {
            Op::Read => self.read(at, conn),
            Op::Write => self.write(at, conn),
            Op::FailingWrite => drop(self.insert(at, conn, None)),
            Op::Panic => return Err(Panicked),
            Op::Block(ops) => {
                let seen = self.sides[at].blocks.last().copied().unwrap_or(false);
                self.sides[at].blocks.push(seen);
                let outcome =
                    caught(|| conn.distributed(|conn| go_on(self.run(ops, at, conn, other))));
                let seen = self.sides[at].blocks.pop().unwrap();
                if let Some(outer) = self.sides[at].blocks.last_mut() {
                    *outer |= seen;
                }
                return outcome;
            }
            Op::Primary(ops) => {
                let before = std::mem::replace(&mut self.sides[at].forced, true);
                let outcome = caught(|| conn.primary(|conn| go_on(self.run(ops, at, conn, other))));
                self.sides[at].forced = before;
                return outcome;
            }
            Op::WithoutSticking(ops) => {
                let before = std::mem::replace(&mut self.sides[at].unmarked, true);
                let outcome = caught(|| {
                    conn.without_sticking(|conn| go_on(self.run(ops, at, conn, other)));
                });
                self.sides[at].unmarked = before;
                return outcome;
            }
            Op::Transaction(ending, ops) => {
                return self.transaction(*ending, ops, at, conn, other);
            }
            Op::ReadOnly(ops) => return self.read_only(ops, at, conn, other),
            Op::InContext(ops) => return self.in_context(ops, at, conn, other),
            Op::OnTheOther(ops) => return self.run(ops, 1 - at, other, conn),
        }
        Ok(())
    }

    fn read(&mut self, at: usize, conn: &mut Conn) {
        let read = note::table.select(note::body).order(note::id).load(conn);
        let side = &self.sides[at];
        let seen: Vec<String> = match read {
            Ok(seen) => seen,
            Err(error) => {
                let refused = RoutedError::downcast(&error);
                assert!(
                    matches!(refused, Some(RoutedError::ReadOnlyTransaction { .. }))
                        && side.forced
                        && side.read_only,
                    "only the primary of a transaction on a replica is refused: {error}"
                );
                return;
            }
        };
        let pending = side.transactions.iter().flatten().map(|write| &write.body);
        let all: Vec<String> = self.committed.iter().chain(pending).cloned().collect();
        let on_primary = seen == all;
        let own = self.must_see.get(&self.whose(at));
        let missed = own.into_iter().flatten().find(|own| !seen.contains(own));
        assert_eq!(missed, None, "an own write is not seen, only {seen:?}");
        let free = side.transactions.is_empty() && !side.forced;
        let may_be_replica = match side.blocks.last() {
            Some(was_on_primary) => free && !was_on_primary,
            None => free && side.read_only,
        };
        assert!(
            on_primary || (may_be_replica && seen.is_empty()),
            "{seen:?} of {all:?}"
        );
        if !all.is_empty() && on_primary && !self.sides[at].unmarked {
            if let Some(block) = self.sides[at].blocks.last_mut() {
                *block = true;
            }
        }
    }

    fn insert(&mut self, at: usize, conn: &mut Conn, body: Option<&str>) -> QueryResult<usize> {
        let insert = match body {
            Some(body) => format!("INSERT INTO note (body) VALUES ('{body}')"),
            None => "INSERT INTO note (body) VALUES (NULL)".to_owned(),
        };
        let result = sql(conn, &insert);
        let fails = body.is_none() || self.sides[at].read_only;
        assert_eq!(result.is_err(), fails, "{result:?}");
        result
    }

    fn write(&mut self, at: usize, conn: &mut Conn) {
        if self.sides[1 - at].in_transaction() {
            return; // a SQLite file has one writer at a time
        }
        self.written += 1;
        let body = format!("{:04}", self.written);
        if self.insert(at, conn, Some(&body)).is_err() {
            return;
        }
        let whose = self.whose(at);
        let side = &mut self.sides[at];
        let seen_by = (!side.unmarked).then_some(whose);
        let write = Pending { body, seen_by };
        match side.transactions.last_mut() {
            Some(transaction) => transaction.push(write),
            None => self.commit(vec![write]),
        }
    }

    fn commit(&mut self, writes: Vec<Pending>) {
        for Pending { body, seen_by } in writes {
            if let Some(whose) = seen_by {
                self.must_see.entry(whose).or_default().push(body.clone());
            }
            self.committed.push(body);
        }
    }

    fn transaction(
        &mut self,
        ending: Ending,
        ops: &[Op],
        at: usize,
        conn: &mut Conn,
        other: &mut Conn,
    ) -> Outcome {
        let nested_in_read_only = self.sides[at].read_only;
        if !nested_in_read_only {
            self.sides[at].transactions.push(vec![]);
        }
        let result = caught(|| {
            conn.transaction(|conn| {
                go_on(self.run(ops, at, conn, other));
                match ending {
                    Ending::Commit => Ok(()),
                    Ending::Rollback => Err(Error::RollbackTransaction),
                }
            })
        })?;
        assert_eq!(result.is_ok(), ending == Ending::Commit, "{result:?}");
        if nested_in_read_only {
            return Ok(());
        }
        let writes = self.sides[at].transactions.pop().unwrap();
        match self.sides[at].transactions.last_mut() {
            _ if ending == Ending::Rollback => {}
            Some(outer) => outer.extend(writes),
            None => self.commit(writes),
        }
        Ok(())
    }

    fn read_only(&mut self, ops: &[Op], at: usize, conn: &mut Conn, other: &mut Conn) -> Outcome {
        if self.sides[at].in_transaction() {
            return self.transaction(Ending::Commit, ops, at, conn, other);
        }
        self.sides[at].read_only = true;
        let result = caught(|| {
            conn.read_only_transaction(|conn| {
                go_on(self.run(ops, at, conn, other));
                QueryResult::Ok(())
            })
        })?;
        result.expect("nothing to fail at");
        self.sides[at].read_only = false;
        Ok(())
    }

    fn in_context(&mut self, ops: &[Op], at: usize, conn: &mut Conn, other: &mut Conn) -> Outcome {
        self.entered += 1;
        let inner = Whose::Context(self.entered);
        self.contexts.push(self.entered);
        let outcome = caught(|| Context::new().run(|| go_on(self.run(ops, at, conn, other))));
        self.contexts.pop();
        let outer = self.contexts.last().copied().map(Whose::Context);
        let kept = self.must_see.remove(&inner).unwrap_or_default();
        if let Some(outer) = outer {
            self.must_see.entry(outer).or_default().extend(kept);
        }
        let sides = self.sides.iter_mut();
        let pending = sides.flat_map(|side| side.transactions.iter_mut().flatten());
        for write in pending.filter(|write| write.seen_by == Some(inner)) {
            write.seen_by = outer;
        }
        outcome
    }

    /// The handles after a program: as if nothing had been.
    fn check_pristine(&mut self, conn: &mut Conn) {
        Context::new().run(|| {
            assert_eq!(who(conn), "n0", "no read-only transaction");
            assert_eq!(
                reason(conn),
                Reason::PrimaryMode,
                "no block, no transaction"
            );
            assert_eq!(
                block_reads_from(conn),
                "n1",
                "nothing forced, nothing stuck"
            );
            write(conn, "check");
            self.committed.push("check".into());
            assert_eq!(block_reads_from(conn), "n0", "marks are on");
        });
    }
}

/// One cluster for all programs: each begins with an empty table. Its connections do not wait for
/// a lock: one thread has both handles, so that nobody would ever free it.
static DB: LazyLock<Db> = LazyLock::new(|| {
    let Db { cluster, .. } = paused_db(1);
    let manager = RoutedConnectionManager::new(crate::kit::config(&cluster)).unwrap();
    let pool = Pool::new(manager).unwrap();
    Db { pool, cluster }
});

fn run_programs(programs: &[Vec<Op>], context: Option<usize>) {
    DB.cluster.sql(0, "DELETE FROM note");
    let mut model = Model {
        contexts: Vec::from_iter(context),
        ..Model::default()
    };
    let mut conns = [DB.pool.get().unwrap(), DB.pool.get().unwrap()];
    for program in programs {
        let [conn, other] = &mut conns;
        // a panic ends the program, not the test
        let _ = model.run(program, 0, conn, other);
        for (at, conn) in conns.iter_mut().enumerate() {
            if model.sides[at].in_transaction() {
                // as with plain Diesel a panic leaves the transaction open: the pool ends it
                *conn = DB.pool.get().unwrap();
                model.must_see.remove(&Whose::Handle(at));
            }
            model.sides[at] = Side::default();
        }
        for conn in &mut conns {
            model.check_pristine(conn);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_read_sees_what_its_context_has_written(
        programs in proptest::collection::vec(proptest::collection::vec(op(), 1..6), 1..4),
        context in any::<bool>(),
    ) {
        match context {
            true => Context::new().run(|| run_programs(&programs, Some(0))),
            false => run_programs(&programs, None),
        }
    }
}
