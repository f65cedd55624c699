// Set-up shared by the examples in the documentation, which include it in a hidden line.
pub use diesel::prelude::*;
pub use diesel::sqlite::SqliteConnection;
pub use diesel_routed::*;

diesel::table! {
    posts (id) {
        id -> Integer,
        title -> Text,
    }
}

/// A primary with one replica, which is the same database: one in the memory of this process.
pub fn config() -> ClusterConfig {
    const URL: &str = "file:doctest?mode=memory&cache=shared";
    ClusterConfig::new(NodeConfig::new(URL).name("primary"))
        .replica(NodeConfig::new(URL).name("replica"))
}

/// A pool on it, and one post.
pub fn pool() -> RoutedPool<SqliteConnection> {
    use diesel::connection::SimpleConnection;

    let manager = RoutedConnectionManager::new(config()).expect("a right configuration");
    manager
        .cluster()
        .connection()
        .batch_execute(
            "CREATE TABLE posts (id INTEGER PRIMARY KEY, title TEXT NOT NULL);
             INSERT INTO posts (title) VALUES ('first')",
        )
        .expect("the database is new");
    RoutedPool::builder()
        .max_size(2)
        .build(manager)
        .expect("handles are made without I/O")
}
