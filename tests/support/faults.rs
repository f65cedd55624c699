//! What can go wrong with servers short of their death.

use std::time::Duration;

use super::Cluster;
use super::forwarder::Forwarder;

/// What differs between the databases; one that cannot do a thing says so.
pub trait Faults {
    fn stop_receiving(&self, replica: usize) -> Result<(), String>;
    fn receive(&self, replica: usize, upstream: usize) -> Result<(), String>;

    /// No delay: as fast as it can.
    fn delay(&self, _replica: usize, _by: Duration) -> Result<(), String> {
        unable()
    }

    fn refuse_writes(&self, _node: usize) -> Result<(), String> {
        unable()
    }

    fn accept_writes(&self, _node: usize) -> Result<(), String> {
        unable()
    }

    fn switch_over(&self, _primary: usize, _replica: usize) -> Result<(), String> {
        unable()
    }

    fn limit_connections(&self, _node: usize) -> Result<(), String> {
        unable()
    }

    fn ask_for_passwords(&self, _node: usize) -> Result<(), String> {
        unable()
    }

    fn change_password(&self, _primary: usize, _password: &str) -> Result<(), String> {
        unable()
    }

    fn never_wait_for_reads(&self, _replica: usize) -> Result<(), String> {
        unable()
    }

    fn set_clock(&self, _node: usize, _shift: i32) -> Result<(), String> {
        unable()
    }
}

fn unable() -> Result<(), String> {
    Err("this database cannot".into())
}

impl Cluster {
    /// The most connections that the application gets after [`Cluster::limit_connections`].
    pub const LIMIT: usize = 10;

    /// The URL of a node for Diesel, by way of a forwarder that has it as a target.
    pub fn url_through(&self, node: usize, forwarder: &Forwarder) -> String {
        let own = format!(":{}/", self.port(node));
        let theirs = format!(":{}/", forwarder.port());
        self.url(node).replace(&own, &theirs)
    }

    /// Cuts a replica off from what its primary sends; what has arrived is applied. PostgreSQL: the
    /// WAL receiver finds nobody; MariaDB: the IO thread is stopped. Also after a restart, in which a
    /// PostgreSQL standby may go back in time, and MariaDB applies nothing that it has not applied.
    #[track_caller]
    pub fn stop_receiving(&self, replica: usize) {
        self.done(
            replica,
            "stop receiving",
            self.backend.stop_receiving(replica),
        );
        let node = &mut self.nodes()[replica];
        (node.receiving, node.paused) = (false, true);
    }

    /// Ends [`Cluster::stop_receiving`].
    #[track_caller]
    pub fn receive(&self, replica: usize) {
        let upstream = self.nodes()[replica].upstream.expect("it is a replica");
        let receives = self.backend.receive(replica, upstream);
        self.done(replica, "receive", receives);
        let node = &mut self.nodes()[replica];
        (node.receiving, node.paused) = (true, false);
    }

    /// Has a replica apply each change only when it is so old, also after a restart; with no delay it
    /// applies them as fast as it can again. MariaDB counts in seconds, and rounds up.
    #[track_caller]
    pub fn delay_replication(&self, replica: usize, by: Duration) {
        self.done(replica, "be delayed", self.backend.delay(replica, by));
    }

    /// Makes a running node refuse writes from now on. Its connections stay open, and it follows
    /// nobody that it did not follow before.
    #[track_caller]
    pub fn refuse_writes(&self, node: usize) {
        self.done(node, "refuse writes", self.backend.refuse_writes(node));
    }

    /// Ends [`Cluster::refuse_writes`].
    #[track_caller]
    pub fn accept_writes(&self, node: usize) {
        self.done(node, "accept writes", self.backend.accept_writes(node));
    }

    /// Makes a caught-up replica the primary and the old primary its replica, without losing a write:
    /// PostgreSQL restarts the old one, MariaDB keeps its connections open.
    #[track_caller]
    pub fn switch_over(&self, primary: usize, replica: usize) {
        let switched = self.backend.switch_over(primary, replica);
        self.done(replica, "switch over", switched);
        let mut nodes = self.nodes();
        nodes[replica].upstream = None;
        nodes[primary].upstream = Some(replica);
    }

    /// Lets a node take no more than [`Cluster::LIMIT`] connections of the application. PostgreSQL:
    /// restarts it.
    #[track_caller]
    pub fn limit_connections(&self, node: usize) {
        self.done(
            node,
            "limit connections",
            self.backend.limit_connections(node),
        );
    }

    /// Gives the application another password, on a primary and so on its replicas. Open connections
    /// stay; [`Cluster::url`] keeps the old one.
    #[track_caller]
    pub fn change_password(&self, primary: usize, password: &str) {
        for node in 0..self.len() {
            let asks = self.backend.ask_for_passwords(node);
            self.done(node, "ask for passwords", asks);
        }
        let changed = self.backend.change_password(primary, password);
        self.done(primary, "change the password", changed);
        self.wait_replicated();
    }

    /// Makes a standby cancel at once whatever reads stand in the way of what it applies (which
    /// otherwise waits for them for 30 s): PostgreSQL only.
    #[track_caller]
    pub fn never_wait_for_reads(&self, replica: usize) {
        let done = self.backend.never_wait_for_reads(replica);
        self.done(replica, "change its patience", done);
    }

    /// Restarts a node with a clock that is wrong by so many seconds. A restart keeps it so.
    #[track_caller]
    pub fn set_clock(&self, node: usize, seconds: i32) {
        self.kill(node);
        let set = self.backend.set_clock(node, seconds);
        self.done(node, "change the clock", set);
        self.restart(node);
    }
}
