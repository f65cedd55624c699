//! What the types promise, checked by the compiler alone.

use std::error::Error;
use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::panic::UnwindSafe;
use std::sync::Arc;

use diesel::connection::{Connection, LoadConnection, SimpleConnection, TransactionManager};
use diesel::migration::MigrationConnection;
use diesel::r2d2::{CustomizeConnection, ManageConnection, R2D2Connection, TestCustomizer};
use diesel::sqlite::SqliteConnection;
use diesel_routed::statement::{
    Dialect, Form, FunctionName, Keeps, Need, Purity, QueryKind, Rules,
};
use diesel_routed::*;

fn send<T: Send + 'static>() {}
fn shared<T: Send + Sync + 'static>() {}
fn debug<T: Debug + ?Sized>() {}
fn display<T: Display>() {}
fn error<T: Error + Send + Sync + 'static>() {}
fn copy<T: Copy + Eq + Hash + Debug + Send + Sync>() {}
fn value<T: Clone + Eq + Debug + Send + Sync>() {}
fn clone<T: Clone + Send + Sync + 'static>() {}

#[test]
fn handles_go_between_threads_and_pools_are_shared() {
    send::<RoutedConnection<SqliteConnection>>();
    clone::<RoutedPool<SqliteConnection>>();
    clone::<Cluster<SqliteConnection>>();
    shared::<RoutedConnectionManager<SqliteConnection>>();
    clone::<Context>();
    send::<Scope<()>>();
    clone::<ClusterConfig>();
    clone::<Strategy>();
    clone::<Rules>();
    fn unwinds<T: UnwindSafe>() {}
    unwinds::<Context>();
}

#[test]
#[cfg(feature = "tower")]
fn layers_fit_servers_that_run_on_many_threads() {
    clone::<TokenKeys>();
    clone::<RoutedLayer>();
    clone::<RoutedService<()>>();
    send::<RoutedFuture<()>>();
    send::<RoutedBody<()>>();
    debug::<RoutedFuture<()>>();
    debug::<RoutedBody<()>>();
}

#[test]
fn everything_can_be_printed() {
    debug::<RoutedConnection<SqliteConnection>>();
    debug::<RoutedConnectionManager<SqliteConnection>>();
    debug::<RoutedPool<SqliteConnection>>();
    debug::<RoutedTransactionManager<SqliteConnection>>();
    debug::<Cluster<SqliteConnection>>();
    debug::<ClusterConfig>();
    debug::<NodeConfig>();
    debug::<Strategy>();
    debug::<Context>();
    debug::<Entered>();
    debug::<Scope<()>>();
    display::<Reason>();
    display::<Role>();
    display::<NodeState>();
    display::<ClusterStatus>();
    display::<FunctionName>();
}

#[test]
fn errors_are_errors_that_go_anywhere() {
    error::<RoutedError>();
    error::<ConfigError>();
    error::<ConnectError>();
    fn into_diesel<T: Into<diesel::result::Error>>() {}
    into_diesel::<RoutedError>();
    fn boxed(error: ConfigError) -> Box<dyn Error + Send + Sync> {
        error.into()
    }
    let _ = boxed;
}

#[test]
fn small_things_are_values() {
    copy::<Role>();
    copy::<Mode>();
    copy::<ClusterMode>();
    copy::<Consistency>();
    copy::<Dialect>();
    copy::<Form>();
    copy::<Keeps>();
    copy::<Purity>();
    value::<Decision>();
    value::<Reason>();
    value::<Route>();
    value::<Need>();
    value::<QueryKind>();
    value::<ClusterStatus>();
    value::<NodeStatus>();
    value::<Fallback>();
    value::<ImplicitContext>();
}

#[test]
fn a_strategy_of_ones_own_is_an_object() {
    #[derive(Debug)]
    struct First;
    impl Select for First {
        fn select(&self, candidates: &[Candidate<'_>]) -> Option<usize> {
            (!candidates.is_empty()).then_some(0)
        }
    }
    let strategy: Arc<dyn Select> = Arc::new(First);
    let _ = ClusterConfig::new("a.db").strategy(Strategy::Custom(strategy));
    shared::<Arc<dyn Select>>();
}

#[test]
fn the_routed_connection_is_a_connection_of_diesel_for_every_generic_use() {
    fn connection<C>()
    where
        C: Connection + SimpleConnection + LoadConnection + MigrationConnection,
        C::TransactionManager: TransactionManager<C>,
    {
    }
    connection::<RoutedConnection<SqliteConnection>>();
    connection::<diesel::r2d2::PooledConnection<RoutedConnectionManager<SqliteConnection>>>();
    fn pools<C: R2D2Connection>() {}
    pools::<RoutedConnection<SqliteConnection>>();
    fn replicated<C: ReplicatedConnection>() {
        fn also_generic<C: Connection + LoadConnection>() {}
        also_generic::<RoutedConnection<C>>();
    }
    replicated::<SqliteConnection>();
    fn manager<M: ManageConnection<Error = diesel::r2d2::Error>>() {}
    manager::<RoutedConnectionManager<SqliteConnection>>();
    fn customizer<
        T: CustomizeConnection<RoutedConnection<SqliteConnection>, diesel::r2d2::Error>,
    >() {
    }
    customizer::<TestCustomizer>();
}

#[test]
fn diesel_s_own_manager_takes_the_routed_connection() {
    type Manager = diesel::r2d2::ConnectionManager<RoutedConnection<SqliteConnection>>;
    fn manager<M: ManageConnection>() {}
    manager::<Manager>();
}
