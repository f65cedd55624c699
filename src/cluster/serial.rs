//! A status as data, for JSON and its kin.

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::node::NodeState;
use crate::position::Position;

/// In seconds.
pub(super) fn seconds<S: Serializer>(
    time: &(impl Into<Option<Duration>> + Copy),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let time: Option<Duration> = (*time).into();
    time.map(|time| time.as_secs_f64()).serialize(serializer)
}

/// Its word alone: an instant means nothing outside of this process.
impl Serialize for NodeState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Its text, which parses back.
impl Serialize for Position {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use serde_json::json;

    use super::*;
    use crate::cluster::{ClusterMode, ClusterStatus, NodeStatus, Role};
    use crate::report::Identity;

    fn node(state: NodeState) -> NodeStatus {
        NodeStatus {
            name: "db1".to_owned(),
            role: Role::Primary,
            state,
            state_since: Duration::from_millis(1500),
            lag: None,
            position: None,
            timeline: None,
            load: None,
            last_probe_age: None,
            identity: None,
            in_flight: 1,
            open: 3,
            idle: 2,
            reads: 7,
            writes: 5,
            errors: 0,
            last_error: None,
        }
    }

    #[test]
    fn a_status_is_numbers_and_the_words_that_logs_and_settings_use() {
        let replica = NodeStatus {
            name: "db2".to_owned(),
            role: Role::Replica,
            lag: Some(Duration::from_millis(250)),
            position: Some("postgres:7:2:0/1A".parse().unwrap()),
            timeline: Some(2),
            load: Some(4),
            last_probe_age: Some(Duration::from_secs(2)),
            identity: Some(Identity::new("7", "10.0.0.2:5432", "1700000000")),
            last_error: Some("refused".to_owned()),
            ..node(NodeState::Down {
                until: Instant::now(),
            })
        };
        let status = ClusterStatus {
            name: "default".to_owned(),
            mode: ClusterMode::ReadOnly,
            nodes: vec![node(NodeState::ReadOnly), replica],
        };
        let expected = json!({
            "name": "default",
            "mode": "read_only",
            "nodes": [
                {
                    "name": "db1", "role": "primary", "state": "read-only", "state_since": 1.5,
                    "lag": null, "position": null, "timeline": null, "load": null,
                    "last_probe_age": null, "identity": null,
                    "in_flight": 1, "open": 3, "idle": 2,
                    "reads": 7, "writes": 5, "errors": 0, "last_error": null,
                },
                {
                    "name": "db2", "role": "replica", "state": "down", "state_since": 1.5,
                    "lag": 0.25, "position": "postgres:7:2:0/1A", "timeline": 2, "load": 4,
                    "last_probe_age": 2.0,
                    "identity": {"system": "7", "server": "10.0.0.2:5432", "run": "1700000000"},
                    "in_flight": 1, "open": 3, "idle": 2,
                    "reads": 7, "writes": 5, "errors": 0, "last_error": "refused",
                },
            ],
        });
        assert_eq!(serde_json::to_value(&status).unwrap(), expected);
    }
}
