//! What is remembered of statements, so that each is scanned once.

use std::any::TypeId;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use diesel::backend::Backend;
use diesel::query_builder::{QueryBuilder, QueryFragment, QueryId};
use diesel::result::QueryResult;
use parking_lot::RwLock;

use super::{Form, FunctionName, Keeps, Need, Purity, QueryKind, Rules, TransactionEffect};

/// How many refused texts of dynamic queries are remembered; then it begins anew.
const MAX_TEXTS: usize = 4096;

/// How many texts of dynamic queries a handle remembers; then it begins anew.
const TEXTS: usize = 64;

/// How long these may be, in bytes: longer ones mostly hold their values, and never come again.
const LONGEST: usize = 1024;

type ByType<T> = HashMap<TypeId, T, BuildHasherDefault<Quick>>;
type ByText<T> = HashMap<Arc<str>, T, BuildHasherDefault<Quick>>;

/// A hash for few keys: a `TypeId` is one already, and whoever makes texts collide has a handle
/// compare no more than `TEXTS` of them.
#[derive(Default)]
struct Quick(u64);

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        // the map takes the upper bits for one thing and the lower ones for another
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last_chunk() else {
            return bytes.iter().for_each(|&byte| self.mix(byte.into()));
        };
        for word in bytes.chunks_exact(8) {
            self.mix(word.try_into().map_or(0, u64::from_le_bytes));
        }
        // some of it again, rather than what is left byte by byte
        self.mix(u64::from_le_bytes(*last));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

impl Quick {
    /// As FxHash does: <https://docs.rs/rustc-hash>.
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

/// What is known of the statements of a cluster, shared by all its handles.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// Advances with every refusal, so that handles look only when there is something new.
    generation: AtomicU64,
    /// Protects what the replicas have refused; replaced once for each refused statement.
    refused: RwLock<Arc<Refused>>,
    /// Typed queries and their texts; each handle looks here once for each.
    scanned: RwLock<ByType<(QueryKind, Box<str>)>>,
    hasher: RandomState,
}

#[derive(Debug, Default, Clone)]
struct Refused {
    queries: HashSet<TypeId>,
    /// Hashes of texts: a collision costs one read on the primary.
    texts: HashSet<u64>,
}

impl Learned {
    fn insert(&self, identity: &Identity) -> bool {
        let mut refused = self.refused.write();
        let refused = Arc::make_mut(&mut refused);
        let new = match identity {
            Identity::Query(id) => refused.queries.insert(*id),
            Identity::Text(text) => {
                if refused.texts.len() >= MAX_TEXTS {
                    refused.texts.clear();
                }
                refused.texts.insert(self.hasher.hash_one(text))
            }
            Identity::Ours | Identity::Anything => false,
        };
        self.generation.fetch_add(1, Ordering::Release);
        new
    }
}

#[cfg(all(test, feature = "sqlite"))]
impl Learned {
    /// Runs `f` while nobody gets a lock.
    pub(crate) fn with_locks_held<R>(&self, f: impl FnOnce() -> R) -> R {
        let _locks = (self.refused.write(), self.scanned.write());
        f()
    }
}

/// How a statement is recognised when it comes again.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Identity {
    Query(TypeId),
    Text(Arc<str>),
    /// Made by the router, and never refused.
    Ours,
    /// What the user does on the real connection.
    Anything,
}

/// A statement as the router sees it.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    kind: QueryKind,
    identity: Identity,
    /// What is known beyond the text.
    refused: Verdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    AsScanned,
    Refused,
}

impl Statement {
    pub(crate) fn kind(&self) -> &QueryKind {
        &self.kind
    }

    /// Tells whether it is a read, and no replica has refused it.
    pub(crate) fn is_read(&self) -> bool {
        !self.was_refused() && *self.kind.need() == Need::Read
    }

    /// The function that needs the primary, if it is that.
    pub(crate) fn function(&self) -> Option<&FunctionName> {
        match self.kind.need() {
            Need::Function(name) => Some(name),
            _ => None,
        }
    }

    pub(crate) fn was_refused(&self) -> bool {
        self.refused == Verdict::Refused
    }

    pub(crate) fn form(&self) -> Form {
        self.kind.form()
    }

    pub(crate) fn keeps(&self) -> Keeps {
        self.kind.session().keeps
    }

    pub(crate) fn transaction_effect(&self) -> TransactionEffect {
        self.kind.session().transaction
    }

    /// Tells whether the statement changes what others can see, as far as is known.
    pub(crate) fn writes(&self) -> bool {
        self.form() != Form::Transaction
            && (self.was_refused()
                || matches!(
                    self.kind.need(),
                    Need::Write | Need::Function(_) | Need::Unknown
                ))
    }

    /// Tells whether it marks the context when it runs on the primary: like a write also a read
    /// that calls a function not known as pure, because nothing refuses it there.
    pub(crate) fn marks(&self) -> bool {
        let may_write = self.form() != Form::Transaction && self.kind.purity() == Purity::Unproven;
        self.writes() || may_write
    }

    /// A read that the router makes itself.
    pub(crate) fn read() -> Self {
        Self::of_ours(QueryKind::new(Form::Read, Need::Read))
    }

    /// A call that Diesel makes of several statements, one of which writes.
    pub(crate) fn write() -> Self {
        Self::of_ours(QueryKind::new(Form::Other, Need::Write))
    }

    /// Whatever the user does on the real connection: also what stays in its session.
    pub(crate) fn anything() -> Self {
        let mut kind = QueryKind::new(Form::Batch, Need::Write);
        kind.keep_state();
        Self {
            identity: Identity::Anything,
            ..Self::of_ours(kind)
        }
    }

    pub(crate) fn is_anything(&self) -> bool {
        self.identity == Identity::Anything
    }

    fn of_ours(kind: QueryKind) -> Self {
        Self {
            kind,
            identity: Identity::Ours,
            refused: Verdict::AsScanned,
        }
    }

    /// The same statement after a replica has refused it.
    pub(crate) fn refused(&self) -> Self {
        Self {
            refused: Verdict::Refused,
            ..self.clone()
        }
    }

    /// Remembers that a replica refused it, and tells whether that is new.
    pub(crate) fn learn(&self, learned: &Learned) -> bool {
        learned.insert(&self.identity)
    }

    /// The SQL, if that was made for this statement and nothing else.
    pub(crate) fn text(&self) -> Option<Arc<str>> {
        match &self.identity {
            Identity::Text(text) => Some(Arc::clone(text)),
            _ => None,
        }
    }

    /// What the log may say of it: the text only if all its values are bound.
    pub(crate) fn describe(&self, learned: &Learned) -> String {
        let scanned = learned.scanned.read();
        let text = match &self.identity {
            Identity::Query(id) => scanned.get(id).map(|(_, text)| &**text),
            _ => None,
        };
        text.unwrap_or("a dynamic query").to_owned()
    }
}

/// What one handle remembers of its queries, so that a look tells all of one that was met before.
#[derive(Debug, Default)]
pub(crate) struct Known {
    queries: ByType<Arc<Statement>>,
    texts: ByText<Arc<Statement>>,
    generation: u64,
    refused: Arc<Refused>,
}

impl Known {
    /// Says what a query needs; typed queries are turned into SQL and scanned once.
    pub(crate) fn look_up<DB, T>(
        &mut self,
        query: &T,
        backend: &DB,
        rules: &Rules,
        learned: &Learned,
    ) -> QueryResult<Arc<Statement>>
    where
        DB: Backend,
        DB::QueryBuilder: Default,
        T: QueryFragment<DB> + QueryId,
    {
        self.catch_up(learned);
        let id = T::query_id();
        if let Some(known) = id.and_then(|id| self.recall(id, learned)) {
            return Ok(known);
        }
        let mut builder = DB::QueryBuilder::default();
        query.to_sql(&mut builder, backend)?;
        let sql = builder.finish();
        match id {
            // a fragment may vary its text under one id; then it says so
            Some(id) if query.is_safe_to_cache_prepared(backend)? => {
                let kind = rules.classify(&sql);
                let scanned = (kind.clone(), sql.into());
                learned.scanned.write().insert(id, scanned);
                Ok(self.remember(id, kind, learned))
            }
            _ => Ok(self.dynamic(&sql, rules, learned)),
        }
    }

    /// A typed query that this handle has met, or another one.
    #[inline]
    fn recall(&mut self, id: TypeId, learned: &Learned) -> Option<Arc<Statement>> {
        if let Some(known) = self.queries.get(&id) {
            return Some(Arc::clone(known));
        }
        let kind = learned.scanned.read().get(&id)?.0.clone();
        Some(self.remember(id, kind, learned))
    }

    fn remember(&mut self, id: TypeId, kind: QueryKind, learned: &Learned) -> Arc<Statement> {
        let statement = Arc::new(self.statement(kind, Identity::Query(id), learned));
        self.queries.insert(id, Arc::clone(&statement));
        statement
    }

    /// Says what a text needs.
    pub(crate) fn look_up_text(
        &mut self,
        sql: &str,
        rules: &Rules,
        learned: &Learned,
    ) -> Arc<Statement> {
        self.catch_up(learned);
        self.dynamic(sql, rules, learned)
    }

    fn dynamic(&mut self, sql: &str, rules: &Rules, learned: &Learned) -> Arc<Statement> {
        if let Some(known) = self.texts.get(sql) {
            return Arc::clone(known);
        }
        let text: Arc<str> = Arc::from(sql);
        let identity = Identity::Text(Arc::clone(&text));
        let statement = Arc::new(self.statement(rules.classify(sql), identity, learned));
        if sql.len() <= LONGEST {
            if self.texts.len() >= TEXTS {
                self.texts.clear();
            }
            self.texts.insert(text, Arc::clone(&statement));
        }
        statement
    }

    fn statement(&self, kind: QueryKind, identity: Identity, learned: &Learned) -> Statement {
        let texts = &self.refused.texts;
        let refused = match &identity {
            Identity::Query(id) => self.refused.queries.contains(id),
            Identity::Text(text) => {
                !texts.is_empty() && texts.contains(&learned.hasher.hash_one(text))
            }
            Identity::Ours | Identity::Anything => false,
        };
        Statement {
            kind,
            identity,
            refused: match refused {
                true => Verdict::Refused,
                false => Verdict::AsScanned,
            },
        }
    }

    #[inline]
    fn catch_up(&mut self, learned: &Learned) {
        let generation = learned.generation.load(Ordering::Acquire);
        if generation != self.generation {
            self.begin_anew(generation, learned);
        }
    }

    /// Forgets all of it, because a replica has refused something: once for each such statement.
    fn begin_anew(&mut self, generation: u64, learned: &Learned) {
        self.generation = generation;
        self.refused = Arc::clone(&learned.refused.read());
        self.queries.clear();
        self.texts.clear();
    }
}
