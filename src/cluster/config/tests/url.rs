//! Where connection strings lead, and what is dialled.

use std::time::Duration;

use super::*;
use crate::cluster::config::url::{Trouble, locate, postgres};
use Dialect::{Mysql, Postgres, Sqlite};

fn default_name(dialect: Dialect, url: &str) -> String {
    match locate(dialect, url) {
        Ok(located) => located.name,
        Err(Trouble::Scheme(_)) => "wrong scheme".to_owned(),
        Err(Trouble::Malformed(_)) => "malformed".to_owned(),
    }
}

#[test]
fn nodes_are_named_by_host_port_and_database_without_credentials() {
    for (dialect, url, expected) in [
        (Postgres, "postgres://u:pw@db1/app", "db1:5432/app"),
        (
            Postgres,
            "postgresql://u@DB1.example.org:6432/app?sslmode=require",
            "db1.example.org:6432/app",
        ),
        (Postgres, "postgres://u:pw@db1", "db1:5432"),
        (Postgres, "postgres://db1/app", "db1:5432/app"),
        (Postgres, "postgres:///app", "[local]:5432/app"),
        (Postgres, "postgres://", "[local]:5432"),
        (Postgres, "postgres://u:p?w#1@db1/app", "db1:5432/app"),
        (
            Postgres,
            "postgres://u:p%40w@[::1]:6432/app",
            "[::1]:6432/app",
        ),
        (Postgres, "postgres://u:pw@h1:1,h2:2/app", "h1:1,h2:2/app"),
        (Postgres, "postgres://u:pw@h1,h2/app", "h1:5432,h2:5432/app"),
        (
            Postgres,
            "postgres://u:pw@%2Frun%2Fpg/app",
            "/run/pg:5432/app",
        ),
        (
            Postgres,
            "postgres:///app?host=/run/pg&port=6432",
            "/run/pg:6432/app",
        ),
        (Postgres, "postgres://u:pw@db1/app%23x", "db1:5432/app#x"),
        (
            Postgres,
            "host=db1 port=6432 dbname=app user=u password=pw",
            "db1:6432/app",
        ),
        (
            Postgres,
            "host = 'db1' dbname='my app' password='p \\' w'",
            "db1:5432/my app",
        ),
        (Postgres, "host=/run/pg dbname=app", "/run/pg:5432/app"),
        (
            Postgres,
            "hostaddr=10.0.0.1 dbname=app",
            "10.0.0.1:5432/app",
        ),
        (
            Postgres,
            "host=h1,h2 port=6432 dbname=app",
            "h1:6432,h2:6432/app",
        ),
        (Postgres, "dbname=app", "[local]:5432/app"),
        (Mysql, "mysql://u:pw@db1/app", "db1:3306/app"),
        (
            Mysql,
            "mariadb://u:p@w@db1:3307/app?ssl_mode=required",
            "db1:3307/app",
        ),
        (Mysql, "mysql://u:pw@[::1]:3307/app", "[::1]:3307/app"),
        (Mysql, "mysql://u:pw@/app", "localhost:3306/app"),
        (
            Mysql,
            "mysql://u:pw@localhost/app?unix_socket=%2Frun%2Fmy.sock",
            "/run/my.sock/app",
        ),
        (Sqlite, "/data/app.db", "app.db"),
        (Sqlite, "my app.db", "my app.db"),
        (Sqlite, "file:/data/my%20app.db?cache=private", "my app.db"),
        (Sqlite, "file:///data/app.db", "app.db"),
        (Sqlite, "sqlite:///data/app.db", "app.db"),
        (Sqlite, "sqlite://app.db", "app.db"),
        (Sqlite, "sqlite:app.db", "app.db"),
        (Sqlite, ":memory:", ":memory:"),
        (Sqlite, "file:x?mode=memory&cache=shared", "x"),
    ] {
        assert_eq!(default_name(dialect, url), expected, "{dialect:?} {url}");
    }
}

#[test]
fn a_string_for_another_backend_or_with_a_misspelt_scheme_is_refused() {
    for (dialect, url) in [
        (Postgres, "mysql://u:pw@db1/app"),
        (Postgres, "postgress://u:pw@db1/app"),
        (Postgres, "POSTGRES://u:pw@db1/app"),
        (Postgres, "postgres:/u:pw@db1/app"),
        (Postgres, "/data/app.db"),
        (Postgres, "db1"),
        (Mysql, "postgres://u:pw@db1/app"),
        (Mysql, "host=db1 dbname=app"),
        (Mysql, "mysql:u:pw@db1/app"),
        (Sqlite, "postgres://u:pw@db1/app"),
        (Sqlite, "host=db1 password=pw"),
    ] {
        assert_eq!(
            default_name(dialect, url),
            "wrong scheme",
            "{dialect:?} {url}"
        );
    }
}

#[test]
fn the_name_of_a_file_never_is_a_servers_credentials() {
    for url in ["u:pw@db1", "sqlite://u:pw@db1", "file:/data/u:pw@db1"] {
        assert_eq!(default_name(Sqlite, url), "malformed", "{url}");
    }
}

#[test]
fn strings_that_lead_to_the_same_database_are_recognised() {
    for (dialect, one, other, same) in [
        (
            Postgres,
            "postgres://u:pw@db1/app",
            "postgresql://v@DB1:5432/app?sslmode=require",
            true,
        ),
        (
            Postgres,
            "postgres://u:pw@db1/app",
            "dbname=app host=db1",
            true,
        ),
        (Postgres, "postgres://u@db1", "postgres://db1/u", true),
        (Postgres, "postgres://u@db1", "postgres://v@db1", false),
        (
            Postgres,
            "postgres://db1/app",
            "postgres://db1:5433/app",
            false,
        ),
        (
            Postgres,
            "postgres://db1/app",
            "postgres://db1/other",
            false,
        ),
        (
            Mysql,
            "mysql://u:pw@db1/app",
            "mariadb://v@db1:3306/app",
            true,
        ),
        (Mysql, "mysql://db1/app", "mysql://db2/app", false),
        (Sqlite, "./app.db", "file:app.db?cache=private", true),
        (Sqlite, "/data/app.db", "sqlite:///data/app.db", true),
        (Sqlite, "/a/app.db", "/b/app.db", false),
        (Sqlite, "file:x?mode=memory&cache=shared", "x", false),
    ] {
        let identity = |url| locate(dialect, url).ok().map(|located| located.identity);
        assert_eq!(identity(one) == identity(other), same, "{one} and {other}");
    }
}

#[test]
fn strings_are_rewritten_only_where_diesel_would_not_take_them() {
    for (dialect, url, expected) in [
        (
            Postgres,
            "postgres://u:pw@db1/app",
            "postgres://u:pw@db1/app",
        ),
        (
            Mysql,
            "mariadb://u:pw@db1/app?ssl_mode=required",
            "mysql://u:pw@db1/app?ssl_mode=required",
        ),
        (Sqlite, "/data/app.db", "/data/app.db"),
        (Sqlite, "file:app.db?mode=ro", "file:app.db?mode=ro"),
        (Sqlite, "sqlite:///data/app.db", "file:/data/app.db"),
        (Sqlite, "sqlite:app.db", "file:app.db"),
    ] {
        let dialled = locate(dialect, url).ok().map(|located| located.url);
        assert_eq!(dialled.as_deref(), Some(expected), "{url}");
    }
}

#[test]
fn timeouts_are_added_unless_the_string_has_them() {
    const REST: &str = "keepalives_interval=3&keepalives_count=3";
    let connect = Duration::from_millis(2_100);
    for (url, expected) in [
        (
            "postgres://u:p?w@db1/app",
            format!(
                "postgres://u:p?w@db1/app?connect_timeout=3&keepalives_idle=5&{REST}&tcp_user_timeout=15000"
            ),
        ),
        (
            "postgres://db1?tcp_user_timeout=9&connect_timeout=1",
            format!("postgres://db1?tcp_user_timeout=9&connect_timeout=1&keepalives_idle=5&{REST}"),
        ),
        (
            "postgres://db1/app?",
            format!(
                "postgres://db1/app?connect_timeout=3&keepalives_idle=5&{REST}&tcp_user_timeout=15000"
            ),
        ),
        (
            "postgres://db1/app?connect_timeout=4&",
            format!(
                "postgres://db1/app?connect_timeout=4&keepalives_idle=5&{REST}&tcp_user_timeout=15000"
            ),
        ),
        (
            "host=db1 connect_timeout=8 keepalives_idle='7'",
            "host=db1 connect_timeout=8 keepalives_idle='7' keepalives_interval='3' \
             keepalives_count='3' tcp_user_timeout='15000'"
                .to_owned(),
        ),
    ] {
        assert_eq!(postgres::with_timeouts(url, connect), expected, "{url}");
    }
}

#[test]
fn a_parameter_is_added_in_the_form_of_the_string() {
    let options = "-c x='a b'";
    for (url, expected) in [
        (
            "postgres://db1/app?a=b",
            "postgres://db1/app?a=b&options=-c%20x%3D%27a%20b%27",
        ),
        ("host=db1", r"host=db1 options='-c x=\'a b\''"),
    ] {
        assert_eq!(postgres::with_parameter(url, "options", options), expected);
    }
}

#[test]
fn a_fragment_is_options_only_if_it_can_be_nothing_else() {
    let plain = |url: &str| (url.to_owned(), None, 1, None);
    let with = |url: &str, name: Option<&str>, weight, pool_size| {
        (url.to_owned(), name.map(str::to_owned), weight, pool_size)
    };
    for (url, expected) in [
        (
            "postgres://h/db#name=eu-1&weight=2&pool_size=8",
            with("postgres://h/db", Some("eu-1"), 2, Some(8)),
        ),
        (
            "postgres://h/db?sslmode=require#weight=0",
            with("postgres://h/db?sslmode=require", None, 0, None),
        ),
        (
            "host=h dbname=db #name=a.b:1",
            with("host=h dbname=db", Some("a.b:1"), 1, None),
        ),
        (
            "/data/app.db#pool_size=3",
            with("/data/app.db", None, 1, Some(3)),
        ),
        (
            "postgres://u:a#b@h/db#name=eu",
            with("postgres://u:a#b@h/db", Some("eu"), 1, None),
        ),
        (" postgres://h/db \n", plain("postgres://h/db")),
        ("postgres://h/app#x", plain("postgres://h/app#x")),
        ("postgres://h/app#name", plain("postgres://h/app#name")),
        (
            "postgres://h/app#name=a&colour=red",
            plain("postgres://h/app#name=a&colour=red"),
        ),
        (
            "postgres://h/app#name=a#x",
            plain("postgres://h/app#name=a#x"),
        ),
        (
            "postgres://u:p#name=x@h/db",
            plain("postgres://u:p#name=x@h/db"),
        ),
        (
            "host=h password=p#name=x",
            plain("host=h password=p#name=x"),
        ),
        (
            "host=h password = mypassword=p#name=x",
            plain("host=h password = mypassword=p#name=x"),
        ),
        (
            "host=h password='a b#name=x'",
            plain("host=h password='a b#name=x'"),
        ),
        (
            "postgres://h/db?password=p#weight=2",
            with("postgres://h/db?password=p", None, 2, None),
        ),
        ("/data#name=a/app.db", plain("/data#name=a/app.db")),
    ] {
        let node = NodeConfig::new(url);
        let seen = (node.url, node.name, node.weight, node.pool_size);
        assert_eq!(seen, expected, "{url}");
    }
}

#[test]
fn a_setter_wins_over_an_option() {
    let node = NodeConfig::new("postgres://h/db#name=a&weight=2")
        .name("b")
        .weight(3);
    assert_eq!((node.name.as_deref(), node.weight), (Some("b"), 3));
}
