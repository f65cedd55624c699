//! Asking one server how it is, on a thread and a connection of its own.

use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use diesel::result::Error;

use super::dialer::{DialError, Dialer, Purpose};
use crate::backend::ReplicatedConnection;
use crate::report::{ErrorClass, Report, ReportedLag};

/// What to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Role and position; more costs the server time.
    State,
    /// How many statements the server works on, too.
    StateAndLoad,
}

/// What came of a probe.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) place: usize,
    /// Which prober of the node answers: one that was given up may answer late.
    pub(crate) prober: u64,
    /// Before the question was sent.
    pub(crate) sent: Instant,
    /// When the answer was there.
    pub(crate) received: Instant,
    pub(crate) report: Result<Report, DialError>,
    /// `None` if not asked for, or not known.
    pub(crate) numbers: Option<Numbers>,
}

/// What helps to choose among replicas that may be asked, and no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// How many statements the server works on.
    pub(crate) load: Option<u32>,
    /// How far it says that it is behind.
    pub(crate) lag: Option<Duration>,
}

/// Gets the numbers of a node, told its name: from whoever has asked lately, or by asking.
pub(crate) type Share =
    Arc<dyn Fn(&str, &mut dyn FnMut() -> Option<Numbers>) -> Option<Numbers> + Send + Sync>;

/// The thread that asks one server; it ends when this is dropped, or as soon after as the server
/// lets it go.
#[derive(Debug)]
pub(crate) struct Prober {
    questions: Sender<Ask>,
}

impl Prober {
    /// Starts the thread; each answer is handed to `reply`.
    pub(super) fn start<C: ReplicatedConnection>(
        dialer: Dialer<C>,
        place: usize,
        number: u64,
        timeout: Duration,
        share: Share,
        reply: impl Fn(Answer) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (questions, receiver) = mpsc::channel();
        thread::Builder::new()
            .name(format!("probe {}", dialer.node.name))
            .spawn(move || {
                let mut line = Line {
                    dialer,
                    timeout,
                    share,
                    conn: None,
                };
                for ask in receiver {
                    reply(line.ask(place, number, ask));
                }
                line.hang_up();
            })?;
        Ok(Self { questions })
    }

    /// Sends a question; the answer may never come.
    pub(crate) fn ask(&self, ask: Ask) {
        // the thread is there for as long as this is
        let _ = self.questions.send(ask);
    }
}

/// The connection that probes run on.
struct Line<C: ReplicatedConnection> {
    dialer: Dialer<C>,
    timeout: Duration,
    share: Share,
    conn: Option<C>,
}

impl<C: ReplicatedConnection> Line<C> {
    fn ask(&mut self, place: usize, prober: u64, ask: Ask) -> Answer {
        let mut sent = Instant::now();
        let had_one = self.conn.is_some();
        let mut report = self.report();
        if had_one && report.is_err() {
            // the connection may have died long ago: only a new one tells of the server
            sent = Instant::now();
            report = self.report();
        }
        let numbers = match (ask, &report) {
            (Ask::StateAndLoad, Ok(report)) => self.numbers(report.reported_lag),
            _ => None,
        };
        Answer {
            place,
            prober,
            sent,
            received: Instant::now(),
            report,
            numbers,
        }
    }

    fn numbers(&mut self, lag: ReportedLag) -> Option<Numbers> {
        let Self {
            conn,
            share,
            dialer,
            ..
        } = self;
        let conn = conn.as_mut()?;
        let lag = match lag {
            ReportedLag::Of(lag) => Some(lag),
            ReportedLag::Unknown | ReportedLag::Unsupported => None,
        };
        share(&dialer.node.name, &mut || {
            let load = conn.server_load().ok()?;
            Some(Numbers { load, lag })
        })
    }

    fn report(&mut self) -> Result<Report, DialError> {
        if self.conn.is_none() {
            let dialled = self.dialer.dial(Purpose::Probes(self.timeout))?;
            self.conn = Some(dialled.conn);
        }
        let report = match &mut self.conn {
            Some(conn) => conn.probe(),
            None => Err(Error::NotFound),
        };
        report.map_err(|error| {
            let failed = self.dialer.failed(&error);
            if C::class_of(&error) == ErrorClass::Death {
                self.conn = None;
            } else {
                self.hang_up();
            }
            failed
        })
    }

    fn hang_up(&mut self) {
        if let Some(conn) = self.conn.take() {
            self.dialer.close(conn);
        }
    }
}
