//! Where a statement goes, and why; pure.

use std::fmt;

use crate::cluster::{Consistency, Role};
use crate::statement::{FunctionName, Need};

/// Where a statement goes and why; what
/// [`explain`](crate::RoutedConnection::explain) returns.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// The role of the node.
    pub target: Role,
    /// The rule that decided.
    pub reason: Reason,
}

/// Why a statement goes where it goes.
///
/// Logs, [`last_route`](crate::RoutedConnection::last_route),
/// [`explain`](crate::RoutedConnection::explain) and the README's table use these words, which are
/// those of its `Display`.
///
/// ```
/// assert_eq!(diesel_routed::Reason::Stuck.to_string(), "the block has used the primary");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Inside a transaction on the primary.
    Transaction,
    /// Inside a read-only transaction.
    ReadOnlyTransaction,
    /// The statement writes.
    Write,
    /// The statement locks rows.
    Locking,
    /// The statement calls a function that needs the primary.
    Function(FunctionName),
    /// The statement changes the session, or the handle holds such state on the primary.
    SessionState,
    /// The statement is not understood.
    Unknown,
    /// A replica refused this statement, as one that writes.
    ReadOnlyRefused,
    /// Inside `primary(..)`, or the block's consistency asks for the primary.
    Forced,
    /// Not inside a block, or the cluster is told to use the primary only.
    PrimaryMode,
    /// This block has used the primary.
    Stuck,
    /// This block reads from this replica.
    Pinned,
    /// No replica is known to have what this context wrote, and to be no older than what it read.
    NotCaughtUp,
    /// A replica was chosen.
    Distributed,
    /// No replica is fresh enough, and [`Fallback::Stale`](crate::Fallback::Stale) takes one that
    /// is not.
    Stale,
    /// No replica is able to answer.
    NoReplica,
    /// No replica is known to be as fresh as the block asks.
    Lagging,
    /// On a replica a table, column, function or type is missing, which may only just have been
    /// made.
    SchemaLag,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Transaction => "transaction",
            Self::ReadOnlyTransaction => "read-only transaction",
            Self::Write => "write",
            Self::Locking => "locking read",
            Self::Function(name) => return write!(f, "function {name}"),
            Self::SessionState => "session state",
            Self::Unknown => "not understood",
            Self::ReadOnlyRefused => "refused by a replica",
            Self::Forced => "primary asked for",
            Self::PrimaryMode => "outside a block",
            Self::Stuck => "the block has used the primary",
            Self::Pinned => "the block's replica",
            Self::NotCaughtUp => "replicas may be behind the request",
            Self::Distributed => "distributed",
            Self::Stale => "the least stale replica",
            Self::NoReplica => "no replica answers",
            Self::Lagging => "no replica is fresh enough",
            Self::SchemaLag => "missing on a replica",
        })
    }
}

/// Where a statement goes, and by which rule: a [`Decision`] that fits into a register, because each
/// statement hands it on from function to function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Course {
    pub(crate) target: Role,
    pub(crate) rule: Rule,
}

impl Course {
    pub(crate) fn primary(rule: Rule) -> Self {
        Self {
            target: Role::Primary,
            rule,
        }
    }

    pub(crate) fn replica(rule: Rule) -> Self {
        Self {
            target: Role::Replica,
            rule,
        }
    }
}

/// The rule that decided: a [`Reason`], without the name of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    Transaction,
    ReadOnlyTransaction,
    Write,
    Locking,
    Function,
    SessionState,
    Unknown,
    ReadOnlyRefused,
    Forced,
    PrimaryMode,
    Stuck,
    Pinned,
    NotCaughtUp,
    Distributed,
    Stale,
    NoReplica,
    Lagging,
    SchemaLag,
}

impl Rule {
    /// What is told of it, for a statement that calls this function.
    pub(crate) fn reason(self, function: Option<&FunctionName>) -> Reason {
        match self {
            Self::Transaction => Reason::Transaction,
            Self::ReadOnlyTransaction => Reason::ReadOnlyTransaction,
            Self::Write => Reason::Write,
            Self::Locking => Reason::Locking,
            Self::Function => match function {
                Some(name) => Reason::Function(name.clone()),
                None => Reason::Unknown,
            },
            Self::SessionState => Reason::SessionState,
            Self::Unknown => Reason::Unknown,
            Self::ReadOnlyRefused => Reason::ReadOnlyRefused,
            Self::Forced => Reason::Forced,
            Self::PrimaryMode => Reason::PrimaryMode,
            Self::Stuck => Reason::Stuck,
            Self::Pinned => Reason::Pinned,
            Self::NotCaughtUp => Reason::NotCaughtUp,
            Self::Distributed => Reason::Distributed,
            Self::Stale => Reason::Stale,
            Self::NoReplica => Reason::NoReplica,
            Self::Lagging => Reason::Lagging,
            Self::SchemaLag => Reason::SchemaLag,
        }
    }
}

/// What a statement asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Demand<'a> {
    /// What the scanner found.
    Scanned(&'a Need),
    /// A replica has refused it before.
    Refused,
}

/// The transaction that a statement would run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transaction {
    None,
    /// A transaction that was opened as a read-only one runs on a node of this role.
    ReadOnly(Role),
    /// Any other runs on the primary.
    ReadWrite,
}

/// What a block has done so far, as far as the decision needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockFacts {
    pub(crate) consistency: Consistency,
    /// This block, or one nested in it, has used the primary.
    pub(crate) used_primary: bool,
    pub(crate) pin: PinFacts,
}

/// The replica that a block reads from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PinFacts {
    /// The block has not read yet.
    None,
    /// Nothing was written since in this context, or the replica has it.
    Current,
    /// Something was written since that the replica may miss.
    Behind,
    /// Its data is older than this block accepts.
    Late,
    /// It does not answer any more.
    Gone,
}

/// Whether replicas could answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplicaFacts {
    /// One at least may be asked and has what the context wrote.
    Fit,
    /// They may be asked, but may miss what the context wrote.
    Behind,
    /// One at least answers, but none is known to be as fresh as is asked for.
    Late,
    /// None may be asked.
    None,
}

/// All that a decision depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) demand: Demand<'a>,
    pub(crate) transaction: Transaction,
    /// The handle's connection to the primary holds session state.
    pub(crate) session_state: bool,
    /// Inside `primary(..)`.
    pub(crate) forced: bool,
    /// The block that the statement runs in; in `Mode::Distributed` there is always one.
    pub(crate) block: Option<BlockFacts>,
}

/// Decides; the first rule that applies wins.
///
/// `replicas` is asked only by the rules that need it.
#[inline]
pub(crate) fn decide(facts: &Facts<'_>, replicas: impl FnOnce() -> ReplicaFacts) -> Course {
    if let Some(course) = by_transaction(facts.transaction) {
        return course;
    }
    if let Some(rule) = needs_primary(facts) {
        return Course::primary(rule);
    }
    match facts.block {
        _ if facts.forced => Course::primary(Rule::Forced),
        Some(block) => in_block(&block, replicas),
        None => Course::primary(Rule::PrimaryMode),
    }
}

#[inline]
fn by_transaction(transaction: Transaction) -> Option<Course> {
    match transaction {
        Transaction::None => None,
        Transaction::ReadWrite => Some(Course::primary(Rule::Transaction)),
        Transaction::ReadOnly(target) => Some(Course {
            target,
            rule: Rule::ReadOnlyTransaction,
        }),
    }
}

#[inline]
fn needs_primary(facts: &Facts<'_>) -> Option<Rule> {
    let asked = match facts.demand {
        Demand::Refused => Some(Rule::ReadOnlyRefused),
        Demand::Scanned(need) => match need {
            Need::Read => None,
            Need::Write => Some(Rule::Write),
            Need::Locking => Some(Rule::Locking),
            Need::Function(_) => Some(Rule::Function),
            Need::SessionState => Some(Rule::SessionState),
            Need::Unknown => Some(Rule::Unknown),
        },
    };
    asked.or(facts.session_state.then_some(Rule::SessionState))
}

#[inline]
fn in_block(block: &BlockFacts, replicas: impl FnOnce() -> ReplicaFacts) -> Course {
    let own_writes = match block.consistency {
        Consistency::Strong | Consistency::PrimaryPreferred => {
            return Course::primary(Rule::Forced);
        }
        Consistency::Eventual => OwnWrites::OfThisBlock,
        Consistency::Session | Consistency::MaxLag(_) => OwnWrites::OfTheContext,
    };
    if block.used_primary {
        return Course::primary(Rule::Stuck);
    }
    match (block.pin, own_writes) {
        (PinFacts::Current, _) | (PinFacts::Behind, OwnWrites::OfThisBlock) => {
            return Course::replica(Rule::Pinned);
        }
        (PinFacts::Behind, OwnWrites::OfTheContext) => return Course::primary(Rule::NotCaughtUp),
        (PinFacts::Late, _) => return Course::primary(Rule::Lagging),
        // another replica may be older than what the block has read
        (PinFacts::Gone, OwnWrites::OfTheContext) => return Course::primary(Rule::NoReplica),
        (PinFacts::Gone, OwnWrites::OfThisBlock) | (PinFacts::None, _) => {}
    }
    match (replicas(), own_writes) {
        (ReplicaFacts::Behind, OwnWrites::OfTheContext) => Course::primary(Rule::NotCaughtUp),
        (ReplicaFacts::Late, _) => Course::primary(Rule::Lagging),
        (ReplicaFacts::None, _) => Course::primary(Rule::NoReplica),
        (ReplicaFacts::Fit | ReplicaFacts::Behind, _) => Course::replica(Rule::Distributed),
    }
}

/// Which own writes a block insists on seeing.
#[derive(Clone, Copy)]
enum OwnWrites {
    OfThisBlock,
    OfTheContext,
}

#[cfg(test)]
mod tests;
