//! What MySQL and MariaDB need of a handle.

use diesel::connection::WithMetadataLookup;
use diesel::mysql::MysqlConnection;

use super::RoutedConnection;

impl WithMetadataLookup for RoutedConnection<MysqlConnection> {
    fn metadata_lookup(&mut self) -> &mut () {
        &mut self.metadata
    }
}
