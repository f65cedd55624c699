//! Passwords that MariaDB and MySQL refuse, and URLs that their client cannot understand.

/// The password is `p@ss/S3CRET`, in the forms in which it can be written.
pub const REFUSED: &[&str] = &[
    "mysql://app:p%40ss%2FS3CRET@127.0.0.1:{port}/app",
    "mariadb://app:p%40ss%2fS3CRET@127.0.0.1:{port}/app",
    "mysql://S3CRET:S3CRET@127.0.0.1:{port}/app",
    "mysql://app:app@127.0.0.1:{port}/nowhere?ssl_mode=disabled",
];

/// The servers ask for passwords anyway.
pub fn refuse_passwords<D>(_: &D, _: usize) {}

pub const MALFORMED: &[&str] = &[
    "mysq://u:S3CRET@h/db",
    "mysql:/u:S3CRET@h/db",
    "mysql:u:S3CRET@h",
    "mysql//u:S3CRET@h",
    "://u:S3CRET@h/db",
    "S3CRET://u@h/db",
    "u:S3CRET@h",
    "postgres://u:S3CRET@h/db",
    "host=h password=S3CRET",
    "mysql://u:S3CRET",
    "mysql://u:S3/3CRET@h/db",
    "mysql://u:S3#3CRET@h/db",
    "mysql://u:1/S3CRET@h/db",
    "mysql://u:S3CRET@h/db/x",
    "mysql://u:S3CRET%@h/db",
    "mysql://u:S3CRET%zz@h/db",
    "mysql://u:S3CRET%00@h/db",
    "mysql://u:S3CRET@[::1/db",
    "mysql://u:S3CRET@h:port/db",
    "mysql://u:S3CRET@h:99999/db",
    "mysql://u:S3CRET@h/db?ssl_mode",
];
