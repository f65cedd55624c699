//! What a statement leaves behind: marks, session state, transactions, and where it was answered.

use std::sync::Arc;

use diesel::result::{DatabaseErrorKind, Error};

use super::Route;
use super::unit::{Marking, Unit};
use crate::backend::ReplicatedConnection;
use crate::cluster::{Cluster, Role};
use crate::context::WriteMark;
use crate::decision::{Course, Rule, Transaction};
use crate::node::{Lease, Node, Tenancy, Use};
use crate::report::ErrorClass;
use crate::statement::{Form, FunctionName, Keeps, Statement, TransactionEffect};

/// Takes the ticket of a statement that is about to run on the primary, if it may write.
pub(super) fn mark_for<C: ReplicatedConnection>(
    cluster: &Cluster<C>,
    unit: &mut Unit,
    lease: &mut Lease<C>,
    statement: &Statement,
) -> Option<WriteMark> {
    if unit.marking == Marking::Off || !statement.marks() {
        return None;
    }
    let context = unit.context();
    if unit.marks.iter().any(|mark| mark.belongs_to(&context)) {
        // one ticket stands for the whole transaction
        return None;
    }
    if context.bears_token() && !unit.wrote.iter().any(|known| known.is(&context)) {
        unit.wrote.push(context.clone());
    }
    if context.is_answered() {
        cluster.events().token_too_late();
    }
    let era = cluster.era_of(lease);
    Some(context.begin_write(cluster.place(), era))
}

/// Settles a statement that ended well.
pub(super) fn after_success<C: ReplicatedConnection>(
    unit: &mut Unit,
    lease: &mut Lease<C>,
    statement: &Statement,
    mark: Option<WriteMark>,
) {
    occupy(lease, statement);
    note_success(unit, statement);
    unit.keep(mark);
}

/// Notes on the connection what a statement leaves in its session.
pub(super) fn occupy<C: ReplicatedConnection>(lease: &mut Lease<C>, statement: &Statement) {
    if statement.keeps() == Keeps::State {
        lease.tenancy = Tenancy::Session;
    } else if statement.form() == Form::Routine {
        lease.make_private();
    }
}

/// Notes what a statement that ended well did to the transaction.
pub(super) fn note_success(unit: &mut Unit, statement: &Statement) {
    unit.unprovable |= match statement.form() {
        Form::Batch | Form::Transaction => true,
        // a function may write outside the transaction
        Form::Read => statement.marks(),
        _ => statement.is_anything(),
    };
    if unit.is_closed_by(statement) {
        unit.close_raw_transaction();
    } else if unit.transaction == Transaction::None {
        unit.raw_transaction |= statement.transaction_effect() == TransactionEffect::Opens;
    }
}

/// Settles a statement that failed.
pub(super) fn after_error<C: ReplicatedConnection>(
    unit: &mut Unit,
    lease: &mut Lease<C>,
    statement: &Statement,
    mark: Option<WriteMark>,
    error: &Error,
) {
    let may_keep = statement.keeps() == Keeps::State || statement.form() == Form::Batch;
    if may_keep && C::class_of(error) != ErrorClass::Death {
        // how far it came is not known: whatever it left is closed with the connection
        lease.tenancy = Tenancy::Session;
    } else if statement.form() == Form::Routine {
        lease.make_private();
    }
    note_failure::<C>(unit, statement, mark, error, || same_evidence(lease));
}

/// Notes what a failed statement did to the transaction and its mark.
///
/// Only a single statement outside a transaction can be proven to have left nothing behind.
pub(super) fn note_failure<C: ReplicatedConnection>(
    unit: &mut Unit,
    statement: &Statement,
    mark: Option<WriteMark>,
    error: &Error,
    evidence: impl FnOnce() -> bool,
) {
    let lost = C::class_of(error) == ErrorClass::Death;
    if lost {
        // the server may still be at it
        mark.iter().chain(&unit.marks).for_each(WriteMark::doubt);
    }
    let opens = statement.transaction_effect() == TransactionEffect::Opens;
    if opens && unit.transaction == Transaction::None && !lost {
        unit.raw_transaction = true;
    }
    if unit.in_transaction() {
        unit.transaction_lost |= C::ended_transaction(error);
        unit.unprovable |= told_of_others(error);
        return unit.keep(mark);
    }
    let single = statement.form() == Form::Dml && !lost && !told_of_others(error);
    if let Some(mark) = mark {
        if single && (C::failed_without_trace(error) || evidence()) {
            mark.give_back();
        }
    }
}

/// Tells whether an error told of a row that the caller may not have seen yet: find-or-create.
fn told_of_others(error: &Error) -> bool {
    use DatabaseErrorKind as Kind;
    matches!(
        error,
        Error::DatabaseError(
            Kind::UniqueViolation | Kind::ForeignKeyViolation | Kind::ExclusionViolation,
            _,
        )
    )
}

/// Asks the server for the last write of this session, and tells whether it has none or the same
/// as when it was last asked.
pub(super) fn same_evidence<C: ReplicatedConnection>(lease: &mut Lease<C>) -> bool {
    let now = lease.connection().write_evidence();
    let before = std::mem::replace(&mut lease.inner().evidence, now.clone());
    now.is_some_and(|now| now.is_empty() || before == Some(now))
}

/// Where a statement was answered; what is told of it is put together when somebody asks.
pub(super) struct Answer {
    node: Arc<str>,
    course: Course,
    /// The one that the rule speaks of; boxed, because most rules speak of none.
    function: Option<Box<FunctionName>>,
}

impl Answer {
    pub(super) fn role(&self) -> Role {
        self.course.target
    }

    pub(super) fn route(&self) -> Route {
        Route {
            node: Arc::clone(&self.node),
            role: self.course.target,
            reason: self.course.rule.reason(self.function.as_deref()),
        }
    }
}

/// Counts an answer and notes where it came from.
pub(super) fn answered<C: ReplicatedConnection>(
    last: &mut Option<Answer>,
    cluster: &Cluster<C>,
    node: &Node<C>,
    course: Course,
    statement: &Statement,
) {
    node.count(match course.target {
        Role::Primary => statement.use_(),
        Role::Replica => Use::Read,
    });
    let function = match course.rule {
        Rule::Function => statement.function().cloned().map(Box::new),
        _ => None,
    };
    let answer = match last {
        // mostly the same one again, whose name all threads share
        Some(last) if Arc::ptr_eq(&last.node, node.name()) => {
            last.course = course;
            last.function = function;
            last
        }
        _ => last.insert(Answer {
            node: Arc::clone(node.name()),
            course,
            function,
        }),
    };
    cluster.events().routed(|| answer.route());
}
