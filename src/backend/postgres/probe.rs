//! What a PostgreSQL server says of itself: one statement a probe, which needs no privilege.
//!
//! It is prepared once for each connection, and anew each time where a pooler does not know it.

use std::time::Duration;

use diesel::pg::PgConnection;
use diesel::pg::data_types::PgTimestamp;
use diesel::prelude::*;
use diesel::result::{ConnectionResult, Error, QueryResult};
use diesel::sql_types::{Array, BigInt, Bool, Integer, Nullable, Text, Timestamptz};

use super::establish_with_options;
use crate::backend::prepared::Prepared;
use crate::backend::{ReplicatedConnection, class};
use crate::cluster::with_parameter;
use crate::position::Position;
use crate::report::{Access, ErrorClass, Following, Identity, Report, ReportedLag};

const NAME: &str = "diesel-routed probe";

const SHOWS_TIMELINE: &str = "GRANT pg_read_all_stats TO <user>";

/// The role is asked once, so that a promotion in between can't mix the functions of both; these
/// raise errors in the other role.
///
/// A standby's timeline is the one that it receives, which only some may see. Without that the
/// control file holds one that it has reached, perhaps long ago: a lower bound.
///
/// Half of what a probe costs the server is reading and planning this: no view, no join, no
/// arithmetic. An address is no use over a socket, a port is.
const STANDING: &str = "SELECT
    host(inet_server_addr()) AS address,
    current_setting('port') AS port,
    pg_postmaster_start_time() AS started,
    (pg_control_system()).system_identifier AS system,
    current_setting('default_transaction_read_only') AS read_only,
    CASE WHEN pg_is_in_recovery() THEN ARRAY[
        'standby',
        pg_last_wal_replay_lsn()::text,
        coalesce(
            received_tli,
            greatest(
                (pg_control_checkpoint()).timeline_id,
                (pg_control_recovery()).min_recovery_end_timeline
            )
        )::text
    ] ELSE ARRAY[
        'primary',
        pg_current_wal_insert_lsn()::text,
        pg_walfile_name(pg_current_wal_insert_lsn()),
        pg_size_bytes(current_setting('wal_segment_size'))::text
    ] END AS standing,
    pid IS NOT NULL AND status IS NULL AS hidden
    FROM pg_stat_get_wal_receiver()";

/// The same of a server that has no write-ahead log to show.
const BARE_STANDING: &str = "SELECT
    host(inet_server_addr()) AS address,
    current_setting('port') AS port,
    pg_postmaster_start_time() AS started,
    NULL::bigint AS system,
    current_setting('default_transaction_read_only') AS read_only,
    ARRAY[CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE 'primary' END] AS standing,
    false AS hidden";

const LOAD: &str = "
    SELECT count(*)::integer AS active FROM pg_stat_activity
    WHERE state = 'active' AND backend_type = 'client backend' AND pid <> pg_backend_pid()";

#[derive(QueryableByName)]
struct Answer {
    #[diesel(sql_type = Nullable<Text>)]
    address: Option<String>,
    #[diesel(sql_type = Text)]
    port: String,
    #[diesel(sql_type = Timestamptz)]
    started: PgTimestamp,
    #[diesel(sql_type = Nullable<BigInt>)]
    system: Option<i64>,
    #[diesel(sql_type = Text)]
    read_only: String,
    #[diesel(sql_type = Array<Nullable<Text>>)]
    standing: Vec<Option<String>>,
    #[diesel(sql_type = Bool)]
    hidden: bool,
}

#[derive(QueryableByName)]
struct Load {
    #[diesel(sql_type = Integer)]
    active: i32,
}

/// Opens a session that asks how the server is set, whatever its role is set to.
pub(super) fn open(url: &str, timeout: Duration) -> ConnectionResult<PgConnection> {
    let url = with_parameter(url, "application_name", NAME);
    // 0 would mean no limit
    let limit = timeout.as_millis().max(1);
    // a session whose default is serializable can ask a standby nothing
    let options = format!(
        r"-c statement_timeout={limit} -c lock_timeout={limit} -c default_transaction_isolation=read\ committed"
    );
    establish_with_options(&url, &options)
}

pub(super) fn identity(conn: &mut PgConnection) -> QueryResult<Identity> {
    ask(conn, unprepared).map(|answer| answer.identity())
}

pub(super) fn report(conn: &mut PgConnection) -> QueryResult<Report> {
    let answer = ask(conn, prepared)?;
    let is_standby = answer.standing().first() == Some(&Some("standby"));
    Ok(Report {
        identity: answer.identity(),
        access: match is_standby || answer.read_only == "on" {
            true => Access::ReadOnly,
            false => Access::ReadWrite,
        },
        following: match is_standby {
            true => Following::Somebody,
            false => Following::Nobody,
        },
        position: answer.position(),
        reported_lag: ReportedLag::Unsupported,
        lineage: None,
        missing_grant: answer.hidden.then_some(SHOWS_TIMELINE),
    })
}

/// What a standby has received: rows are seen a moment before they count as replayed.
pub(super) fn received(conn: &mut PgConnection) -> QueryResult<Option<Position>> {
    let replayed = "pg_last_wal_replay_lsn()";
    let received = format!("greatest(pg_last_wal_receive_lsn(), {replayed})");
    let question = STANDING.replacen(replayed, &received, 1);
    let answer: Answer = diesel::sql_query(question).get_result(conn)?;
    Ok(answer.position())
}

/// One round trip, on connections whose statements are prepared by name anyway.
pub(super) fn committed_position(conn: &mut PgConnection) -> QueryResult<Option<Position>> {
    ask(conn, prepared).map(|answer| answer.position())
}

pub(super) fn load(conn: &mut PgConnection) -> QueryResult<Option<u32>> {
    let Load { active } = diesel::sql_query(LOAD).get_result(conn)?;
    Ok(u32::try_from(active).ok())
}

type Ask = fn(&mut PgConnection, &'static str) -> QueryResult<Answer>;

fn ask(conn: &mut PgConnection, ask: Ask) -> QueryResult<Answer> {
    match ask(conn, STANDING) {
        Err(error) if is_unable(&error) => ask(conn, BARE_STANDING),
        answer => answer,
    }
}

/// Two round trips: it is prepared each time.
fn unprepared(conn: &mut PgConnection, standing: &'static str) -> QueryResult<Answer> {
    diesel::sql_query(standing).get_result(conn)
}

/// Reading and planning is most of what it costs the server. A pooler that lends a server's session for
/// one transaction may not know the statement any more.
fn prepared(conn: &mut PgConnection, standing: &'static str) -> QueryResult<Answer> {
    match Prepared(standing).get_result(conn) {
        Err(error) if class::begins(&error, "prepared statement") => unprepared(conn, standing),
        answer => answer,
    }
}

/// Tells whether the server can't answer, as opposed to not now.
fn is_unable(error: &Error) -> bool {
    let class = PgConnection::class_of(error);
    matches!(class, ErrorClass::Query | ErrorClass::Schema)
        && !class::begins(error, "canceling statement")
}

impl Answer {
    fn identity(&self) -> Identity {
        let address = self.address.as_deref().unwrap_or_default();
        let server = format!("{address}:{}", self.port);
        Identity::new(&self.system(), &server, &self.started.0.to_string())
    }

    fn system(&self) -> String {
        self.system
            .map_or_else(String::new, |system| system.to_string())
    }

    fn standing(&self) -> Vec<Option<&str>> {
        self.standing.iter().map(Option::as_deref).collect()
    }

    fn position(&self) -> Option<Position> {
        let system = self.system();
        let position = match self.standing()[..] {
            [_, Some(lsn), Some(wal_file), Some(segment_size)] => {
                let segment_size = segment_size.parse().ok()?;
                Position::parse_postgres_primary(&system, wal_file, lsn, segment_size)
            }
            [_, Some(lsn), Some(timeline)] => {
                Position::parse_postgres_standby(&system, timeline.parse().ok()?, lsn)
            }
            _ => return None,
        };
        position.ok()
    }
}
