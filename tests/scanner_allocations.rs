//! Classifying allocates nothing. A binary of its own: the counter sees every allocation of the process.
mod counting;

use counting::allocations;
use diesel_routed::statement::{Dialect, Rules, UnknownFunctions};

#[test]
fn classifying_and_cloning_a_kind_allocate_nothing() {
    let long = format!("SELECT {} FROM t", "f(a, 'b', \"c\"), ".repeat(1000));
    for dialect in [Dialect::Postgres, Dialect::Mysql, Dialect::Sqlite] {
        let rules = Rules::new(dialect)
            .primary_functions(["register", "audit.log"])
            .replica_functions(["vouched"])
            .unknown_functions(UnknownFunctions::Primary);
        for sql in [
            "SELECT lower(a), vouched(b) FROM t WHERE c IN (1, 2)",
            "SELECT register(1)",
            "SELECT a_function_on_no_list_with_a_rather_long_name(1)",
            "SELECT nextval('s'); SET x = 1; /*! SELECT @a */",
            "INSERT INTO t VALUES ('a', 1)",
            "SELECT 'open",
            &long,
        ] {
            let before = allocations();
            let kind = rules.classify(sql);
            let copy = kind.clone();
            let allocated = allocations() - before;
            assert_eq!(allocated, 0, "{dialect:?} allocates nothing for {sql:.40}");
            assert_eq!(kind, copy, "a clone is equal");
        }
    }
}
