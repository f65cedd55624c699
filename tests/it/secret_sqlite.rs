//! URIs with a key that SQLite cannot open.

use crate::kit::sqlite::Db;

/// The key is `p@ss/S3CRET`, in the forms in which it can be written.
pub const REFUSED: &[&str] = &[
    "file:///nowhere/at/all.db?key=p%40ss%2FS3CRET",
    "sqlite:///nowhere/at/all.db?hexkey=S3CRET",
    "file:/nowhere/at/all.db?mode=rw&textkey=S3CRET",
    "/nowhere/S3CRET/all.db",
];

/// There is no server to refuse any.
pub fn refuse_passwords(_: &Db, _: usize) {}

pub const MALFORMED: &[&str] = &[
    "postgres://u:S3CRET@h/db",
    "mysql://u:S3CRET@h/db",
    "S3CRET://u@h/db",
    "://u:S3CRET@h/nowhere/db",
    "host=h password=S3CRET",
    "password = S3CRET",
    "/nowhere/u:S3CRET@h",
    "sqlite://nowhere/u:S3CRET@h",
    "/nowhere/S3CRET/",
    "file:/nowhere/all.db?key=S3CRET%",
    "file:/nowhere/all.db?key=S3CRET%zz",
    "file:/nowhere/all.db?key=S3CRET%00",
    "file:/nowhere/S3CRET%zz/all.db",
    "file:/nowhere/all.db?S3CRET",
    "file:/nowhere/all.db?=S3CRET",
    "file:/nowhere/all.db?key=1&S3CRET",
    "file:/nowhere/all.db?S3CRET=1",
    "file:/nowhere/all.db?mode=S3CRET",
    "file:/nowhere/all.db?cache=S3CRET",
    "file:/nowhere/all.db?vfs=S3CRET",
    "file://S3CRET/nowhere/all.db",
    "sqlite:///nowhere/all.db?key=S3CRET%f",
];
