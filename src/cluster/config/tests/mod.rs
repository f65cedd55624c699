mod env;
mod secrets;
mod url;
mod validate;

use super::*;
use crate::statement::Dialect;

/// A valid PostgreSQL cluster with one replica.
fn postgres() -> ClusterConfig {
    ClusterConfig::new("postgres://u:pw@db1/app").replica("postgres://u:pw@db2/app")
}

fn error_of(config: ClusterConfig, dialect: Dialect) -> ConfigError {
    config
        .validated(dialect)
        .expect_err("this configuration should be refused")
}
