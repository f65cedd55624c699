//! Nothing that can be printed shows a connection string or password.

use proptest::prelude::{prop_assert, proptest};

use super::*;
use crate::cluster::config::secret::scrub;
use Dialect::{Mysql, Postgres, Sqlite};

const SECRET: &str = "S3CRET";

const ALL: [Dialect; 3] = [Postgres, Mysql, Sqlite];

/// Each is wrong in its own way and holds the secret where a careless message would quote it.
const MALFORMED: [&str; 42] = [
    "postgress://u:S3CRET@h/db",
    "postgres:/u:S3CRET@h/db",
    "postgres:u:S3CRET@h",
    "postgres//u:S3CRET@h",
    "://u:S3CRET@h/db",
    "S3CRET://u@h/db",
    "u:S3CRET@h",
    "sqlite://u:S3CRET@h",
    "u:S3CRET@h://db",
    "postgres://u:S3CRET",
    "postgres://u:S3/CRET@h/db",
    "postgres://u:x/S3CRET@h/db",
    "postgres://u:1/S3CRET@h/db",
    "postgres://u:1/x?S3CRET@h/db",
    "postgres://u:1/x?S3CRET=@h/db",
    "postgres://u:p@S3CRET@h/db",
    "postgres://u:@S3CRET@h/db",
    "postgres://u:p@@S3CRET@h/db",
    "postgres://u:S3CRET%@h/db",
    "postgres://u:S3CRET%zz@h/db",
    "postgres://u:S3CRET%00@h/db",
    "postgres://u:S3CRET\0@h/db",
    "postgres://u:S3CRET@[::1/db",
    "postgres://u:S3CRET@[::1]x/db",
    "postgres://u:S3CRET@::1/db",
    "postgres://u:S3CRET@h:port/db",
    "postgres://u:S3CRET@h:99999/db",
    "postgres://u:S3CRET@h:0/db",
    "postgres://u:S3CRET@h/db?sslmode",
    "postgres://u:1/x?S3CRET=x@h/db",
    "postgres://u:1/x?y=S3CRET@h/db",
    "postgres://u:x@h/db?password=S3=CRET",
    "postgres://u:S3CRET@a/db,postgres://u:S3CRET@b/db",
    "host=h password=x S3CRET",
    "host=h password='S3CRET",
    "host=u:S3CRET@h dbname=db",
    "host=h port=S3CRET",
    "=S3CRET host=h",
    "mysql://u:S3CRET",
    "mysql://u:S3#CRET@h/db",
    "mysql://u:1/S3CRET@h/db",
    "mysql://u:S3CRET@h/db/x",
];

#[test]
fn a_malformed_string_is_shown_by_no_error_and_no_debug() {
    for url in MALFORMED {
        for dialect in ALL {
            for config in [
                ClusterConfig::new(url),
                ClusterConfig::new("postgres://h0/db").replica(url),
                ClusterConfig::new(NodeConfig::new(url).name("named")),
            ] {
                let mut printed = format!("{config:?}");
                match config.validated(dialect) {
                    Err(error) => printed += &format!("{error} {error:?}"),
                    Ok(valid) => {
                        assert_eq!(dialect, Sqlite, "only as a path can {url:?} be accepted");
                        printed += &format!("{valid} {valid:?}");
                    }
                }
                assert!(
                    !printed.contains("CRET"),
                    "{dialect:?} {url:?} is shown: {printed}"
                );
            }
        }
    }
}

#[test]
fn foreign_text_about_a_malformed_string_is_dropped_whole() {
    for url in MALFORMED {
        let text = format!("could not parse \"{url}\" near CRET@h");
        for dialect in [Postgres, Mysql] {
            let scrubbed = scrub(&text, dialect, "eu-1", url);
            assert_eq!(
                scrubbed, "the connection string of node eu-1 is malformed",
                "{url:?}"
            );
        }
    }
}

#[test]
fn foreign_text_loses_the_string_and_every_form_of_the_password() {
    for (dialect, url, text) in [
        (
            Postgres,
            "postgres://u:S3CRET@h/db",
            "no route to postgres://u:S3CRET@h/db",
        ),
        (
            Postgres,
            "postgres://u:S3CRET@h/db",
            "S3CRET and S3CRET again",
        ),
        (
            Postgres,
            "postgres://u:S3CRET%2Fx@h/db",
            "raw S3CRET%2Fx, decoded S3CRET/x",
        ),
        (Postgres, "postgres://u:S3CRET!x@h/db", "encoded S3CRET%21x"),
        (Postgres, "postgres://u@h/db?password=S3CRET", "S3CRET"),
        (Postgres, "postgres://u@h/db?sslpassword=S3CRET", "S3CRET"),
        (
            Postgres,
            "host=h password='S3CRET x'",
            "S3CRET x, S3CRET%20x",
        ),
        (Mysql, "mysql://u:S3CRET@x@h/db", "S3CRET@x, S3CRET%40x"),
        (Mysql, "mariadb://u:S3CRET@h/db", "mysql://u:S3CRET@h/db"),
        (
            Sqlite,
            "file:x.db?key=S3CRET",
            "cannot open file:x.db?key=S3CRET",
        ),
        (
            Postgres,
            "postgres://u:S3@h/db",
            "S3 is too short to be replaced by asterisks",
        ),
    ] {
        let scrubbed = scrub(text, dialect, "eu-1", url);
        assert!(!scrubbed.contains("S3"), "{url}: {scrubbed}");
    }
    let harmless = "connection refused";
    let kept = scrub(harmless, Postgres, "eu-1", "postgres://u:S3CRET@h/db");
    assert_eq!(kept, harmless, "what holds no secret stays readable");
}

#[test]
fn a_node_scrubs_what_it_dials() {
    let valid = ClusterConfig::new("postgres://u:S3CRET@h/db")
        .validated(Postgres)
        .unwrap();
    let dialled = valid.primary.dial_url().to_owned();
    assert!(dialled.contains(SECRET), "the server needs the password");
    assert_eq!(
        valid
            .primary
            .scrub(&format!("cannot reach {dialled}:\n\tconnection refused\n")),
        "cannot reach ***: connection refused",
        "on one line, as libpq does not"
    );
}

#[test]
fn a_valid_configuration_shows_no_credentials() {
    let config = ClusterConfig::new("postgres://someone:S3CRET@h1/db")
        .replica("host=h2 user=someone password=S3CRET dbname=db")
        .replica("postgres://someone@h3/db?password=S3CRET#name=eu");
    let debug = format!("{config:?}");
    let valid = config.validated(Postgres).unwrap();
    for printed in [debug, format!("{valid:?}"), format!("{valid}")] {
        for secret in [SECRET, "someone", "://"] {
            assert!(!printed.contains(secret), "{secret} is in {printed}");
        }
    }
}

#[test]
fn a_connection_string_in_the_wrong_place_is_not_shown() {
    let url = "postgres://u:S3CRET@h/db";
    for config in [
        ClusterConfig::new("postgres://h/db").name(url),
        ClusterConfig::new(NodeConfig::new("postgres://h/db").name(url)),
        postgres().primary_functions([url]),
    ] {
        let error = error_of(config, Postgres);
        assert!(!format!("{error} {error:?}").contains(SECRET), "{error}");
    }
}

proptest! {
    #[test]
    fn no_password_reaches_a_name_or_an_error(
        junk in "[a-z0-9:@/?#&=%+ '\\\\.\\[\\]-]{0,12}",
        more in "[a-z0-9:@/?#&=%+ '\\\\.\\[\\]-]{0,12}",
    ) {
        for url in [
            format!("postgres://u:S{junk}Q3X{more}@h/db"),
            format!("mysql://u:S{junk}Q3X{more}@h/db"),
            format!("host=h password='S{}Q3X{}'", junk.replace('\'', ""), more.replace('\'', "")),
        ] {
            for dialect in [Postgres, Mysql] {
                let config = ClusterConfig::new(url.as_str());
                let mut printed = format!("{config:?}");
                match config.validated(dialect) {
                    Ok(valid) => printed += &format!("{valid} {valid:?}"),
                    Err(error) => printed += &format!("{error} {error:?}"),
                }
                prop_assert!(!printed.to_uppercase().contains("Q3X"), "{:?}: {}", url, printed);
            }
        }
    }
}
