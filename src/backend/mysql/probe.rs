//! What a MySQL or MariaDB server says of itself: two statements a probe.
//!
//! Where the two differ, each executes the comments that are meant for it: `/*M! .. */` is
//! MariaDB's, `/*!50700 .. */` MySQL's, which MariaDB passes over from that version on.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::mysql::MysqlConnection;
use diesel::prelude::*;
use diesel::result::{Error, QueryResult};
use diesel::sql_types::{BigInt, Bool, Nullable, Text};

use crate::backend::prepared::Prepared;
use crate::backend::{ReplicatedConnection, class};
use crate::position::{GtidState, Position};
use crate::report::{Access, ErrorClass, Following, Identity, Report, ReportedLag};

#[cfg(test)]
mod tests;

const MARIADB_GRANT: &str = "GRANT SLAVE MONITOR ON *.* TO <user>";
const MYSQL_GRANT: &str = "GRANT SELECT ON performance_schema.* TO <user>";

/// The second in which the server started, as it counts itself: both terms go by the clock of the
/// statement. Signed, since a clock may have been set back to before the start.
macro_rules! started {
    () => {
        "UNIX_TIMESTAMP() - CAST(CAST((
            SELECT VARIABLE_VALUE
            FROM /*M! information_schema.GLOBAL_STATUS */ /*!50700 performance_schema.global_status */
            WHERE VARIABLE_NAME = 'Uptime'
        ) AS UNSIGNED) AS SIGNED)"
    };
}

/// A session ends with its server, so that one which has read the start once need not read all of
/// the server's counters again.
const STANDING: &str = concat!(
    "SELECT /*M! TRUE */ /*!50700 FALSE */ AS is_mariadb,
        CAST(@@read_only AS CHAR) NOT IN ('0', 'OFF') OR @@innodb_read_only AS read_only,
        /*M! CONCAT_WS(':', @@server_id, @@hostname, @@port) */ /*!50700 @@server_uuid */ AS server,
        CAST(COALESCE(@diesel_routed_run, ",
    started!(),
    ", '') AS CHAR) AS run,
        /*M! @@gtid_slave_pos */ /*!50700 '' */ AS applied,
        /*M! CONCAT_WS(',', NULLIF(@@gtid_binlog_state, ''), NULLIF(@@gtid_slave_pos, '')) */
            /*!50700 '' */ AS lineage,
        /*M! @@gtid_current_pos */ /*!50700 IF(@@gtid_mode = 'ON', @@gtid_executed, '') */
            AS executed"
);

/// The servers that this one follows, one row for each, under MariaDB's names.
///
/// Diesel can't read MySQL's `SHOW`, which has no columns before it is executed. The table knows
/// no lag, but when the transactions were committed that have come, are being applied, and were.
const CHANNELS: &str = "
    /*M! SHOW ALL SLAVES STATUS */
    /*!80000
    SELECT IF(receiver.SERVICE_STATE = 'ON', 'Yes', 'No') AS Slave_IO_Running,
        IF(applier.SERVICE_STATE = 'ON', 'Yes', 'No') AS Slave_SQL_Running,
        IF(@@gtid_mode = 'ON', NULL, (
            SELECT CASE
                WHEN MAX(APPLYING_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP) > 0 THEN
                    TIMESTAMPDIFF(
                        SECOND,
                        MIN(NULLIF(APPLYING_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP, 0)),
                        NOW(6)
                    )
                WHEN MAX(LAST_APPLIED_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP)
                    >= receiver.LAST_QUEUED_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP THEN 0
                ELSE TIMESTAMPDIFF(
                    SECOND,
                    receiver.LAST_QUEUED_TRANSACTION_IMMEDIATE_COMMIT_TIMESTAMP,
                    NOW(6)
                )
            END
            FROM performance_schema.replication_applier_status_by_worker AS worker
            WHERE worker.CHANNEL_NAME = receiver.CHANNEL_NAME
        )) AS Seconds_Behind_Master
    FROM performance_schema.replication_connection_status AS receiver
    JOIN performance_schema.replication_applier_status AS applier
        ON applier.CHANNEL_NAME = receiver.CHANNEL_NAME
    */";

const RECEIVED: &str = "
    SELECT /*M! TRUE */ /*!50700 FALSE */ AS is_mariadb,
        /*M! @@gtid_slave_pos */
        /*!50700 (SELECT COALESCE(GROUP_CONCAT(NULLIF(RECEIVED_TRANSACTION_SET, '')), '')
            FROM performance_schema.replication_connection_status) */ AS received,
        /*M! @@gtid_binlog_pos */ /*!50700 @@gtid_executed */ AS executed";

const LOAD: &str = "
    SELECT CAST(VARIABLE_VALUE AS SIGNED) AS running
    FROM /*M! information_schema.GLOBAL_STATUS */ /*!50700 performance_schema.global_status */
    WHERE VARIABLE_NAME = 'Threads_running'";

#[derive(QueryableByName)]
struct Standing {
    #[diesel(sql_type = Bool)]
    is_mariadb: bool,
    #[diesel(sql_type = Bool)]
    read_only: bool,
    #[diesel(sql_type = Text)]
    server: String,
    #[diesel(sql_type = Text)]
    run: String,
    /// MariaDB: what it has applied as a replica.
    #[diesel(sql_type = Text)]
    applied: String,
    /// MariaDB: the last that it has of each server, in each domain.
    #[diesel(sql_type = Text)]
    lineage: String,
    /// What it has executed, as a replica or not.
    #[diesel(sql_type = Text)]
    executed: String,
}

#[derive(QueryableByName)]
struct Received {
    #[diesel(sql_type = Bool)]
    is_mariadb: bool,
    #[diesel(sql_type = Text)]
    received: String,
    #[diesel(sql_type = Text)]
    executed: String,
}

#[derive(QueryableByName)]
struct Load {
    #[diesel(sql_type = BigInt)]
    running: i64,
}

#[derive(QueryableByName)]
struct Channel {
    #[diesel(sql_type = Text, column_name = Slave_IO_Running)]
    receives: String,
    #[diesel(sql_type = Text, column_name = Slave_SQL_Running)]
    applies: String,
    #[diesel(sql_type = Nullable<BigInt>, column_name = Seconds_Behind_Master)]
    seconds_behind: Option<i64>,
}

/// Who follows whom, as far as the user of the connection may see it.
struct Channels {
    following: Following,
    lag: ReportedLag,
    missing_grant: Option<&'static str>,
}

pub(super) fn prepare(conn: &mut MysqlConnection, timeout: Duration) {
    // 0 would mean no limit
    let limit = timeout.as_millis().max(1);
    let seconds = limit as f64 / 1000.0;
    let session = format!(
        "SET SESSION /*M! max_statement_time = {seconds} */ /*!50700 max_execution_time = {limit} */,
            @diesel_routed_run = {}",
        started!()
    );
    // a server that knows no limit is probed all the same, and a lost connection shows then
    let _ = conn.batch_execute(&session);
}

pub(super) fn identity(conn: &mut MysqlConnection) -> QueryResult<Identity> {
    Prepared(STANDING).get_result(conn).map(Standing::identity)
}

pub(super) fn committed_position(conn: &mut MysqlConnection) -> QueryResult<Option<Position>> {
    let standing: Standing = Prepared(STANDING).get_result(conn)?;
    Ok(standing.position(Following::Nobody))
}

pub(super) fn report(conn: &mut MysqlConnection) -> QueryResult<Report> {
    let standing: Standing = Prepared(STANDING).get_result(conn)?;
    let channels = channels(conn)?;
    let position = standing.position(channels.following);
    Ok(Report {
        access: match standing.read_only {
            true => Access::ReadOnly,
            false => Access::ReadWrite,
        },
        following: channels.following,
        reported_lag: match position {
            Some(_) => ReportedLag::Unsupported,
            None => channels.lag,
        },
        position,
        lineage: standing.lineage(),
        missing_grant: channels.missing_grant,
        identity: standing.identity(),
    })
}

/// What a replica has received or written down: rows are seen a moment before they count as applied.
pub(super) fn received(conn: &mut MysqlConnection) -> QueryResult<Option<Position>> {
    let Received {
        is_mariadb,
        received,
        executed,
    } = Prepared(RECEIVED).get_result(conn)?;
    let parse = match is_mariadb {
        true => Position::parse_mariadb,
        false => Position::parse_mysql,
    };
    let both = parse(&received).ok().zip(parse(&executed).ok());
    Ok(both.and_then(|(received, executed)| received.merge(&executed)))
}

pub(super) fn load(conn: &mut MysqlConnection) -> QueryResult<Option<u32>> {
    let Load { running } = Prepared(LOAD).get_result(conn)?;
    // one of them is this statement
    Ok(u32::try_from(running - 1).ok())
}

fn channels(conn: &mut MysqlConnection) -> QueryResult<Channels> {
    let unknown = |missing_grant| Channels {
        following: Following::Unknown,
        lag: ReportedLag::Unsupported,
        missing_grant,
    };
    let begins = |error: &Error, text| class::begins(error, text);
    match Prepared(CHANNELS).load::<Channel>(conn) {
        Ok(channels) => Ok(Channels::of(&channels)),
        Err(error) if begins(&error, "Access denied") => Ok(unknown(Some(MARIADB_GRANT))),
        Err(error) if begins(&error, "SELECT command denied") => Ok(unknown(Some(MYSQL_GRANT))),
        // an old server, or one of another make
        Err(error) if begins(&error, "Query was empty") => Ok(unknown(None)),
        Err(error) if MysqlConnection::class_of(&error) == ErrorClass::Schema => Ok(unknown(None)),
        Err(error) => Err(error),
    }
}

impl Channels {
    fn of(channels: &[Channel]) -> Self {
        use ReportedLag::{Of, Unsupported};
        let longest = |one, other| match (one, other) {
            (Unsupported, lag) => lag,
            (Of(one), Of(other)) => Of(one.max(other)),
            _ => ReportedLag::Unknown,
        };
        Self {
            following: match channels {
                [] => Following::Nobody,
                _ => Following::Somebody,
            },
            lag: channels.iter().map(Channel::lag).fold(Unsupported, longest),
            missing_grant: None,
        }
    }
}

impl Channel {
    fn lag(&self) -> ReportedLag {
        let runs = self.receives == "Yes" && self.applies == "Yes";
        match self.seconds_behind.filter(|_| runs) {
            // less than nothing by a clock that differs
            Some(seconds) => ReportedLag::Of(Duration::from_secs(seconds.max(0).unsigned_abs())),
            None => ReportedLag::Unknown,
        }
    }
}

impl Standing {
    fn identity(self) -> Identity {
        Identity::new("", &self.server, &self.run)
    }

    fn lineage(&self) -> Option<GtidState> {
        let state = GtidState::parse(&self.lineage).ok();
        state.filter(|state| *state != GtidState::default())
    }

    fn position(&self, following: Following) -> Option<Position> {
        // only what a replica has applied counts of what it has got, or has written by itself
        let replica = match following {
            Following::Somebody => true,
            Following::Nobody => false,
            Following::Unknown => self.read_only && !self.applied.is_empty(),
        };
        let position = match self.is_mariadb {
            true if replica => Position::parse_mariadb(&self.applied),
            true => Position::parse_mariadb(&self.executed),
            false => Position::parse_mysql(&self.executed),
        };
        position.ok().filter(|position| !position.is_empty())
    }
}
