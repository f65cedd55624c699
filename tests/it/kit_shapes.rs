//! The shapes that a read can have.

use diesel_routed::Decision;

/// A way to ask a node for its name.
pub struct Shape<C> {
    pub name: &'static str,
    pub explain: fn(&mut C) -> Decision,
    /// Returns the name of the node that answered, by its data.
    pub read: fn(&mut C) -> String,
}

/// Makes a [`Shape`] of a query and of what turns its rows into the node's name.
macro_rules! shape {
    ($name:expr, $query:expr, $node:expr $(,)?) => {
        $crate::kit::shapes::Shape {
            name: $name,
            explain: |conn| conn.explain(&$query).expect("the router lets it pass"),
            read: |conn| ($node)($query.load(conn).expect("every node answers it")),
        }
    };
}
pub(crate) use shape;

/// The one row.
pub fn only<T: Clone>(rows: Vec<T>) -> T {
    assert_eq!(rows.len(), 1, "every node has one name");
    rows[0].clone()
}
