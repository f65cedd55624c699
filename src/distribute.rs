//! `distributed` on plain connections, so that code compiles before and after the swap.

use std::sync::Once;

/// Gives plain Diesel connections a `distributed` that only runs its closure.
///
/// For code that is shared with tools and tests on an ordinary connection. It is implemented for
/// Diesel's three connections and for `PooledConnection<ConnectionManager<C>>` of one of them,
/// and for nothing else: on a routed connection, also a pooled one, `distributed` is the
/// [real one](crate::RoutedConnection::distributed).
///
/// ```
/// # mod setup { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/doctest_setup.rs")); }
/// # use setup::*;
/// use diesel_routed::Distribute;
///
/// let mut conn = SqliteConnection::establish(":memory:")?;
/// let one = conn.distributed(|conn| {
///     diesel::select(1_i32.into_sql::<diesel::sql_types::Integer>()).get_result::<i32>(conn)
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Distribute: Sized {
    /// Runs `f` on this one connection; warns once, because nothing is distributed.
    fn distributed<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        static WARNED: Once = Once::new();
        WARNED.call_once(|| {
            log::warn!("`distributed` was called on a plain connection: it distributes nothing");
        });
        f(self)
    }
}

/// Implements it for one connection type and for a pooled one.
#[cfg(any(feature = "postgres", feature = "mysql", feature = "sqlite"))]
macro_rules! distribute {
    ($($connection:ty),+) => {
        $(
            impl Distribute for $connection {}
            impl Distribute
                for diesel::r2d2::PooledConnection<diesel::r2d2::ConnectionManager<$connection>>
            {
            }
        )+
    };
}

#[cfg(feature = "postgres")]
distribute!(diesel::pg::PgConnection);
#[cfg(feature = "mysql")]
distribute!(diesel::mysql::MysqlConnection);
#[cfg(feature = "sqlite")]
distribute!(diesel::sqlite::SqliteConnection);
