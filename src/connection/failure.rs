//! What an error of a node means: for the statement, the block, the connection and the node.

use diesel::result::Error;

use super::lend::Spent;
use super::unit::Unit;
use crate::backend::ReplicatedConnection;
use crate::cluster::Cluster;
use crate::decision::Rule;
use crate::node::Origin;
use crate::report::ErrorClass;
use crate::statement::{Form, Statement};

/// What to do after a statement failed on a replica.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The error is the user's.
    Return,
    /// Another replica may answer.
    OtherReplica,
    /// The primary answers, for this reason.
    Primary(Rule),
}

/// Decides what happens after an error on a replica, and tells the cluster what it means.
pub(super) fn after_replica_error<C: ReplicatedConnection>(
    cluster: &Cluster<C>,
    unit: &Unit,
    origin: &Origin<'_, C>,
    statement: &Statement,
    error: &Error,
) -> Next {
    let class = C::class_of(error);
    if class == ErrorClass::Death {
        origin.died();
    }
    if unit.in_transaction() {
        return Next::Return;
    }
    if matches!(class, ErrorClass::Death | ErrorClass::Conflict) {
        cluster.events().retried(origin.node.name(), class);
        // a block that has read goes on only where it sees nothing older
        return match unit.pinned().filter(|_| !unit.goes_on_anywhere()) {
            Some(_) => Next::Primary(Rule::NoReplica),
            None => Next::OtherReplica,
        };
    }
    if class == ErrorClass::Schema {
        // whether it has the primary's present schema only the primary could tell
        cluster.events().retried(origin.node.name(), class);
        return Next::Primary(Rule::SchemaLag);
    }
    if class != ErrorClass::Role {
        return Next::Return;
    }
    if statement.learn(cluster.learned()) {
        let text = statement.describe(cluster.learned());
        cluster.events().refused(&text);
    }
    Next::Primary(Rule::ReadOnlyRefused)
}

/// What becomes of a replica's connection after an error.
pub(super) fn spent_by<C: ReplicatedConnection>(unit: &Unit, error: &Error) -> Spent {
    if unit.in_transaction() {
        // the transaction ends first
        return Spent::No;
    }
    match C::class_of(error) {
        ErrorClass::Death => Spent::Lost,
        ErrorClass::Role | ErrorClass::Conflict | ErrorClass::Schema => Spent::GiveBack,
        _ => Spent::No,
    }
}

/// What a read has failed with that failed on a replica first, and then on the primary: what is
/// missing on a replica is missing as long as the primary does not say otherwise.
pub(super) fn answer_of<C: ReplicatedConnection>(
    why: Rule,
    on_replica: Option<Error>,
    on_primary: Error,
) -> Error {
    let silent = C::class_of(&on_primary) == ErrorClass::Death;
    match on_replica {
        Some(error) if silent && why == Rule::SchemaLag => error,
        _ => on_primary,
    }
}

/// Tells whether a statement failed before it began, so that its block has seen nothing of the
/// primary's data.
pub(super) fn shows_nothing<C: ReplicatedConnection>(error: &Error) -> bool {
    C::class_of(error) == ErrorClass::Schema
}

/// Tells the primary's node of a lost connection, and whether the handle may open another one.
pub(super) fn note_loss<C: ReplicatedConnection>(
    origin: &Origin<'_, C>,
    unit: &Unit,
    error: &Error,
) -> bool {
    let lost = C::class_of(error) == ErrorClass::Death;
    if lost {
        origin.node.lost();
    }
    lost && !unit.in_transaction()
}

/// Tells whether a write that a server has refused may run again on another one: it has done
/// nothing, is one statement, and stands in no transaction.
pub(super) fn may_resend<C: ReplicatedConnection>(
    unit: &Unit,
    statement: &Statement,
    error: &Error,
) -> bool {
    let single = statement.form() == Form::Dml && !unit.in_transaction();
    single && C::class_of(error) == ErrorClass::Role
}
