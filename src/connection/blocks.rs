//! Blocks: what holds for the statements of a closure, and is over with it, also by a panic.

use diesel::result::{Error, QueryResult};

use super::RoutedConnection;
use super::settle::{Answer, mark_for};
use super::unit::{Block, Marking};
use crate::backend::ReplicatedConnection;
use crate::cluster::{Consistency, Role};
use crate::decision::Transaction;
use crate::statement::Statement;

impl<C: ReplicatedConnection> RoutedConnection<C> {
    /// Runs `f`, sending its reads to one replica until it writes.
    ///
    /// The consistency is that of the configuration, by default
    /// [`Session`](Consistency::Session): what this context has written, the block sees. A write
    /// in the block, and whatever else needs the primary, runs there, and so does the rest of the
    /// block. The state from before is back afterwards, also after a panic.
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*; let mut conn = pool().get()?;
    /// let titles = conn.distributed(|conn| posts::table.select(posts::title).load::<String>(conn))?;
    /// assert_eq!(titles, ["first"]);
    /// assert_eq!(conn.last_route().unwrap().node, "replica".into());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn distributed<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        let consistency = self.cluster.settings().consistency;
        self.distributed_with(consistency, f)
    }

    /// As [`distributed`](Self::distributed), with a consistency of its own.
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*; let mut conn = pool().get()?;
    /// // a number on a dashboard, which may miss what this request has just written
    /// let count = conn.distributed_with(Consistency::Eventual, |conn| {
    ///     posts::table.count().get_result::<i64>(conn)
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn distributed_with<R>(
        &mut self,
        consistency: Consistency,
        f: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let ambient = self.unit.ambient.as_ref().map(|ambient| &ambient.block);
        let around = self.unit.block.as_ref().or(ambient);
        let affinity = self.cluster.settings().affinity;
        let block = Block::nested(around, consistency, affinity);
        let outer = self.unit.block.replace(block);
        f(&mut *Scope::new(self, Saved::Block(outer)).conn)
    }

    /// Runs `f` on the primary, reads included.
    ///
    /// Reading leaves no mark, but a block around reads on from the primary afterwards, so that
    /// it sees nothing older. Inside a read-only transaction on a replica every statement fails
    /// with [`RoutedError::ReadOnlyTransaction`](crate::RoutedError::ReadOnlyTransaction).
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*; let mut conn = pool().get()?;
    /// conn.distributed(|conn| {
    ///     conn.primary(|conn| posts::table.first::<(i32, String)>(conn))
    /// })?;
    /// assert_eq!(conn.last_route().unwrap().reason, Reason::Forced);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn primary<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        let outer = std::mem::replace(&mut self.unit.forced, true);
        f(&mut *Scope::new(self, Saved::Forced(outer)).conn)
    }

    /// Runs `f` without marks: what it writes does not send later reads to the primary.
    ///
    /// For writes that nobody reads back at once, such as counters and logs. Marks from before
    /// hold on.
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*; let mut conn = pool().get()?;
    /// conn.without_sticking(|conn| {
    ///     diesel::insert_into(posts::table).values(posts::title.eq("seen")).execute(conn)
    /// })?;
    /// conn.distributed(|conn| posts::table.first::<(i32, String)>(conn))?;
    /// assert_eq!(conn.last_route().unwrap().role, Role::Replica);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn without_sticking<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        let outer = std::mem::replace(&mut self.unit.marking, Marking::Off);
        f(&mut *Scope::new(self, Saved::Marking(outer)).conn)
    }

    /// Runs a look-up, and runs it again on the primary if a replica has found nothing: what somebody
    /// has just made, another request or a service, may not have arrived there yet.
    ///
    /// For look-ups whose empty answer is an event, such as the first request with a new session or
    /// an invitation that was sent a moment ago; one that often finds nothing is better sent to the
    /// primary at once. `f` runs twice at most. As after every read of the primary in a block, the
    /// rest of the block stays there.
    ///
    /// # Errors
    ///
    /// Those of `f`; [`NotFound`](diesel::NotFound) counts as nothing found.
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*; let mut conn = pool().get()?;
    /// let post = conn.distributed(|conn| {
    ///     conn.or_primary(|conn| posts::table.find(7).first::<(i32, String)>(conn).optional())
    /// })?;
    /// assert_eq!(post, None);
    /// assert_eq!(conn.last_route().unwrap().role, Role::Primary);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn or_primary<T>(
        &mut self,
        mut f: impl FnMut(&mut Self) -> QueryResult<Option<T>>,
    ) -> QueryResult<Option<T>> {
        self.last_answer = None;
        let found = f(self);
        let on_replica = |answer: &Answer| answer.role() == Role::Replica;
        let movable = self.unit.transaction == Transaction::None;
        match found {
            Ok(None) | Err(Error::NotFound)
                if movable && self.last_answer.as_ref().is_some_and(on_replica) =>
            {
                self.primary(f)
            }
            found => found,
        }
    }

    /// Runs `f` in a read-only transaction, on a replica where a block would read from one.
    ///
    /// Whether the replica has what this context wrote is checked before the transaction begins.
    /// Inside a transaction it is a savepoint of that one. A write in it fails as the server
    /// says.
    ///
    /// # Errors
    ///
    /// As [`Connection::transaction`](diesel::Connection::transaction).
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*; let mut conn = pool().get()?;
    /// let (count, titles) = conn.read_only_transaction(|conn| {
    ///     let count = posts::table.count().get_result::<i64>(conn)?;
    ///     let titles = posts::table.select(posts::title).load::<String>(conn)?;
    ///     QueryResult::Ok((count, titles)) // of one snapshot
    /// })?;
    /// assert_eq!(conn.last_route().unwrap().role, Role::Replica);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_only_transaction<T, E, F>(&mut self, f: F) -> Result<T, E>
    where
        F: FnOnce(&mut Self) -> Result<T, E>,
        E: From<Error>,
    {
        if self.unit.in_transaction() {
            return diesel::Connection::transaction(self, f);
        }
        self.begin_read_only(C::begin_read_only)?;
        let result = f(self);
        self.finish(result)
    }

    /// Returns the real connection to the primary, for what Diesel offers on it alone: `COPY TO`,
    /// notifications, the registration of functions.
    ///
    /// What is done with it is not seen: it counts as a write, keeps the handle on the primary,
    /// and the connection is closed when the handle goes back.
    ///
    /// # Errors
    ///
    /// If the primary can't be reached, or a read-only transaction is open on a replica.
    ///
    /// ```
    /// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
    /// # use setup::*; let mut conn = pool().get()?;
    /// #[diesel::declare_sql_function]
    /// extern "SQL" {
    ///     fn shout(text: diesel::sql_types::Text) -> diesel::sql_types::Text;
    /// }
    ///
    /// let real = conn.primary_connection()?;
    /// shout_utils::register_impl(real, |text: String| text.to_uppercase())?;
    /// let title = posts::table.select(shout(posts::title)).first::<String>(&mut conn)?;
    /// assert_eq!(title, "FIRST");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn primary_connection(&mut self) -> QueryResult<&mut C> {
        self.run(&Statement::anything(), |_| Ok(()))?;
        // the write ends with the unit, not with this call
        let Some(lease) = &mut self.leases.primary else {
            return Err(Error::NotFound);
        };
        let mark = mark_for(&self.cluster, &mut self.unit, lease, &Statement::anything());
        self.unit.marks.extend(mark);
        Ok(lease.connection())
    }

    /// A replica is lent for the outermost block, or else for a transaction on it.
    pub(super) fn end_of_block(&mut self) {
        if self.unit.block_mut().is_none() && self.unit.transaction == Transaction::None {
            self.leases.give_back_replicas();
        }
    }

    fn restore(&mut self, saved: Saved) {
        match saved {
            Saved::Forced(forced) => self.unit.forced = forced,
            Saved::Marking(marking) => self.unit.marking = marking,
            Saved::Block(outer) => {
                let inner = std::mem::replace(&mut self.unit.block, outer);
                match (self.unit.block_mut(), inner) {
                    (Some(outer), Some(inner)) => outer.absorb(inner),
                    (_, inner) => {
                        self.note_seen(inner);
                        self.end_of_block();
                    }
                }
            }
        }
    }
}

/// What was before a block.
enum Saved {
    Block(Option<Block>),
    Forced(bool),
    Marking(Marking),
}

/// Puts back what was before, however the closure ends.
struct Scope<'a, C: ReplicatedConnection> {
    conn: &'a mut RoutedConnection<C>,
    saved: Option<Saved>,
}

impl<'a, C: ReplicatedConnection> Scope<'a, C> {
    fn new(conn: &'a mut RoutedConnection<C>, saved: Saved) -> Self {
        Self {
            conn,
            saved: Some(saved),
        }
    }
}

impl<C: ReplicatedConnection> Drop for Scope<'_, C> {
    fn drop(&mut self) {
        if let Some(saved) = self.saved.take() {
            self.conn.restore(saved);
        }
    }
}
