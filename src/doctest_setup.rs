// Set-up shared by the examples in the documentation: a SQLite primary with one replica, which is
// the same file.
pub use diesel::sqlite::SqliteConnection;
pub use diesel_routed::{ClusterConfig, RoutedConnectionManager, RoutedPool};

diesel::table! {
    posts (id) {
        id -> Integer,
        title -> Text,
    }
}

pub fn pool() -> RoutedPool<SqliteConnection> {
    use diesel::connection::SimpleConnection;
    use std::sync::atomic::{AtomicU32, Ordering};

    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!(
        "diesel-routed-doctest-{}-{}.db",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    );
    let path = std::env::temp_dir().join(name);
    let _ = std::fs::remove_file(&path);
    let path = path.to_str().expect("a temporary path is text").to_owned();
    let config = ClusterConfig::new(path.as_str()).replica(path.as_str());
    let manager = RoutedConnectionManager::new(config).expect("the configuration is right");
    let pool = RoutedPool::builder()
        .max_size(2)
        .build(manager)
        .expect("handles are made without I/O");
    pool.get()
        .expect("a handle is free")
        .batch_execute(
            "CREATE TABLE posts (id INTEGER PRIMARY KEY, title TEXT NOT NULL);
             INSERT INTO posts (title) VALUES ('first')",
        )
        .expect("the file is new");
    pool
}
