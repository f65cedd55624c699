//! The README, held against the code: its examples are tests, and its tables are complete.
#![cfg_attr(
    all(doctest, feature = "postgres", feature = "sqlite"),
    doc = include_str!("../README.md")
)]

#[cfg(test)]
mod tests {
    use crate::statement::{Dialect, Need, classify};
    use crate::{ConfigError, Reason};

    const README: &str = include_str!("../README.md");

    #[test]
    fn the_table_of_settings_has_every_variable() {
        let name = "ROUTED_NO_SETTING".to_owned();
        let error = ConfigError::UnknownVariable { name }.to_string();
        let (_, accepted) = error.split_once("accepted are ").unwrap();
        for variable in accepted.split(", ") {
            assert!(README.contains(&format!("`{variable}` |")), "{variable}");
        }
    }

    #[test]
    fn the_routing_table_has_every_reason_in_its_own_words() {
        use Reason::*;
        let call = classify(Dialect::Postgres, "SELECT nextval('s')");
        let Need::Function(nextval) = call.need() else {
            panic!("{call:?}");
        };
        let reasons = [
            Transaction,
            ReadOnlyTransaction,
            Write,
            Locking,
            Function(nextval.clone()),
            SessionState,
            Unknown,
            ReadOnlyRefused,
            Forced,
            PrimaryMode,
            Stuck,
            Pinned,
            NotCaughtUp,
            Distributed,
            Stale,
            NoReplica,
            Lagging,
            SchemaLag,
        ];
        for reason in reasons {
            assert!(README.contains(&format!("`{reason}`")), "{reason}");
        }
    }
}
