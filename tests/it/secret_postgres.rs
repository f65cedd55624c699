//! Passwords that PostgreSQL refuses, and URLs that it cannot understand.

use diesel::connection::Connection;
use diesel::pg::PgConnection;

use crate::kit::postgres::Db;

/// The password is `p@ss/S3CRET`, in the forms in which it can be written.
pub const REFUSED: &[&str] = &[
    "postgres://app:p%40ss%2FS3CRET@127.0.0.1:{port}/app",
    "postgresql://app@127.0.0.1:{port}/app?password=p%40ss%2FS3CRET",
    "host=127.0.0.1 port={port} user=app dbname=app password='p@ss/S3CRET'",
    "postgres://app:S3CRET@127.0.0.1:{port}/nowhere",
    "postgres://S3CRET:S3CRET@127.0.0.1:{port}/app?application_name=mine",
];

/// Makes a server ask for passwords.
pub fn refuse_passwords(db: &Db, node: usize) {
    let file = db.cluster.dir().join(format!("n{node}/data/pg_hba.conf"));
    let rules = std::fs::read_to_string(&file).expect("the server has rules");
    let rules = format!("host app all 127.0.0.1/32 scram-sha-256\n{rules}");
    std::fs::write(&file, rules).expect("own directory");
    db.cluster.sql(node, "SELECT pg_reload_conf()");
    let wrong = db.cluster.url(node).replace("app:app@", "app:wrong@");
    let soon = std::time::Duration::from_secs(20);
    crate::support::wait_until("the rules are in force", soon, || {
        PgConnection::establish(&wrong).is_err()
    });
}

pub const MALFORMED: &[&str] = &[
    "postgress://u:S3CRET@h/db",
    "postgres:/u:S3CRET@h/db",
    "postgres:u:S3CRET@h",
    "://u:S3CRET@h/db",
    "S3CRET://u@h/db",
    "u:S3CRET@h",
    "mysql://u:S3CRET@h/db",
    "postgres://u:S3CRET",
    "postgres://u:S3/3CRET@h/db",
    "postgres://u:x/S3CRET@h/db",
    "postgres://u:1/x?S3CRET@h/db",
    "postgres://u:p@S3CRET@h/db",
    "postgres://u:S3CRET%@h/db",
    "postgres://u:S3CRET%zz@h/db",
    "postgres://u:S3CRET%00@h/db",
    "postgres://u:S3CRET@[::1/db",
    "postgres://u:S3CRET@h:port/db",
    "postgres://u:S3CRET@h:99999/db",
    "postgres://u:S3CRET@h/db?sslmode",
    "postgres://u:x@127.0.0.1:1/db?S3CRET=x",
    "host=h password=x S3CRET",
    "host=h password='S3CRET",
    "host=h port=S3CRET",
    "=S3CRET host=h",
];
