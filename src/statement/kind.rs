//! The answer of the scanner.
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What one SQL text needs and does, as far as the text tells.
///
/// Cheap to clone; building one allocates nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryKind {
    pub(super) need: Need,
    pub(super) form: Form,
    pub(super) calls: Purity,
    pub(super) session: SessionEffect,
}

impl QueryKind {
    /// Whether the text must run on the primary: everything but [`Need::Read`].
    pub fn needs_primary(&self) -> bool {
        self.need != Need::Read
    }

    /// Why the text needs the primary, or [`Need::Read`].
    ///
    /// Of several needs the first one in the text is told; [`Need::SessionState`], which alone is no write, never
    /// hides another one.
    pub fn need(&self) -> &Need {
        &self.need
    }

    /// What kind of statement it is: whether it may be sent again, and what its failure proves.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Whether running it on the primary can have changed data without saying so.
    ///
    /// [`Purity::Pure`] if the need is [`Need::Read`], [`Need::Locking`] or [`Need::SessionState`] and every function
    /// called is a built-in known to change nothing, or was vouched for by
    /// [`Rules::replica_functions`](super::Rules::replica_functions).
    pub fn purity(&self) -> Purity {
        match self.need {
            Need::Read | Need::Locking | Need::SessionState => self.calls,
            _ => Purity::Unproven,
        }
    }

    /// What it leaves behind on its connection, over all its statements.
    pub fn session(&self) -> SessionEffect {
        self.session
    }

    pub(super) const fn new(form: Form, need: Need) -> Self {
        Self {
            need,
            form,
            calls: Purity::Pure,
            session: SessionEffect {
                keeps: Keeps::Nothing,
                transaction: TransactionEffect::None,
            },
        }
    }

    /// The first need stays, but `SessionState` gives way to any other.
    pub(super) fn raise(&mut self, need: Need) {
        let gives_way = match self.need {
            Need::Read => true,
            Need::SessionState => need != Need::Read,
            _ => false,
        };
        if gives_way {
            self.need = need;
        }
    }

    pub(super) fn keep_state(&mut self) {
        self.session.keeps = Keeps::State;
    }

    /// Takes in what a later statement of the same text, or another reading of it, needs and does.
    pub(super) fn absorb(&mut self, other: QueryKind) {
        self.raise(other.need);
        if other.calls == Purity::Unproven {
            self.calls = Purity::Unproven;
        }
        if other.session.keeps == Keeps::State {
            self.keep_state();
        }
        if other.session.transaction != TransactionEffect::None {
            self.session.transaction = other.session.transaction;
        }
    }
}

/// Why a statement needs the primary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// It does not: it is surely a read.
    Read,
    /// It changes data, structure, or the server.
    Write,
    /// It locks rows or tables.
    Locking,
    /// It calls a function that needs the primary; the first such function in the text.
    Function(FunctionName),
    /// It reads or sets what belongs to one session, and changes no data.
    SessionState,
    /// The text is empty, not understood, or several statements at once.
    Unknown,
}

/// What kind of statement a text holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// One statement that begins as a read. It may still lock, or call a function that writes: see [`QueryKind::need`].
    Read,
    /// Exactly one `INSERT`, `UPDATE`, `DELETE`, `MERGE` or `REPLACE`, which happens wholly or not at all.
    Dml,
    /// One `CALL`, `DO`, `EXECUTE`, or anonymous block: what it runs, and commits, cannot be seen.
    Routine,
    /// One statement that controls a transaction: `BEGIN`, `COMMIT`, `ROLLBACK`, `SAVEPOINT` and their relatives.
    Transaction,
    /// More than one statement. A semicolon with only comments behind it begins no second one.
    Batch,
    /// One statement of any other kind, such as DDL or `SET`; also text that is not understood.
    Other,
}

/// Whether a read is known to change nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purity {
    /// It calls only functions known to change nothing.
    Pure,
    /// It may change something: nobody vouches for a function that it calls, or it is no read.
    Unproven,
}

/// What a text leaves behind on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionEffect {
    /// Whether something of the session outlives the text.
    pub keeps: Keeps,
    /// What becomes of the transaction; in a batch the last statement that says something wins.
    pub transaction: TransactionEffect,
}

/// Whether something of the session outlives a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Keeps {
    /// Nothing does.
    Nothing,
    /// A setting, session lock, temporary table, prepared statement, variable or the like does.
    State,
}

/// What a text does to the transaction of its connection, as its own SQL says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransactionEffect {
    /// Nothing that the text tells. Implicit commits are not told: a transaction taken for open is the safe error.
    None,
    /// It leaves a transaction open.
    Opens,
    /// It leaves no transaction open.
    Closes,
}

/// The name of a function, as the lists have it; one on no list is cut after 30 bytes.
#[derive(Clone)]
pub struct FunctionName(Name);

#[derive(Clone)]
enum Name {
    BuiltIn(&'static str),
    Listed(Arc<str>),
    Seen { length: u8, bytes: [u8; Self::CUT] },
}

impl Name {
    const CUT: usize = 30;
}

impl FunctionName {
    /// The name.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Name::BuiltIn(name) => name,
            Name::Listed(name) => name,
            Name::Seen { length, bytes } => {
                std::str::from_utf8(&bytes[..usize::from(*length)]).expect("cut between characters")
            }
        }
    }

    pub(super) const fn built_in(name: &'static str) -> Self {
        Self(Name::BuiltIn(name))
    }

    pub(super) fn listed(name: &Arc<str>) -> Self {
        Self(Name::Listed(Arc::clone(name)))
    }

    /// A name that outlives neither the text nor the lists.
    pub(super) fn seen(name: &[u8]) -> Self {
        let cut = &name[..name.len().min(Name::CUT)];
        let whole_characters = match std::str::from_utf8(cut) {
            Ok(_) => cut.len(),
            Err(error) => error.valid_up_to(),
        };
        let mut bytes = [0; Name::CUT];
        bytes[..cut.len()].copy_from_slice(cut);
        Self(Name::Seen {
            length: whole_characters as u8,
            bytes,
        })
    }
}

impl PartialEq for FunctionName {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for FunctionName {}

impl Hash for FunctionName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Display for FunctionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for FunctionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
