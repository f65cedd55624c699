//! A memcached of the test's own.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::super::SharedStatus;
use super::super::link::Address;

pub(super) struct Server {
    port: u16,
    process: Option<Child>,
}

impl Server {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let process = None;
        let mut server = Self { port, process };
        server.restart();
        server
    }

    /// Starts it on the same port, with nothing in it.
    pub(super) fn restart(&mut self) {
        self.kill();
        // it ends with the thread that started it, however that ends
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]);
        if Command::new("id").arg("-u").output().unwrap().stdout == b"0\n" {
            let nobody = ["--reuid", "nobody", "--regid", "nogroup", "--clear-groups"];
            command.args(nobody);
        }
        command.args(["memcached", "-l", "127.0.0.1", "-U", "0", "-t", "1"]);
        command.args(["-p", &self.port.to_string()]);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        let process = command
            .spawn()
            .expect("util-linux and memcached are installed");
        self.process = Some(process);
        let start = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            let ended = self.process.as_mut().unwrap().try_wait().unwrap();
            assert_eq!(ended, None, "memcached runs");
            assert!(
                start.elapsed() < Duration::from_secs(10),
                "memcached answers"
            );
            std::thread::sleep(Duration::from_millis(3));
        }
    }

    pub(super) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Stops it in its tracks: connections stay open, and nothing answers.
    pub(super) fn freeze(&self) {
        self.signal("STOP");
        // a signal is on its way for a moment
        let start = Instant::now();
        while !self.is_stopped() {
            assert!(start.elapsed() < Duration::from_secs(10), "it stops");
            std::thread::sleep(Duration::from_millis(3));
        }
    }

    pub(super) fn thaw(&self) {
        self.signal("CONT");
    }

    fn pid(&self) -> String {
        self.process.as_ref().expect("it runs").id().to_string()
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .args(["-s", name, &self.pid()])
            .status();
        assert!(status.unwrap().success(), "the server was there");
    }

    /// Tells whether all of its threads are.
    fn is_stopped(&self) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
        let stats = threads.map(|thread| thread.unwrap().path().join("stat"));
        let mut stats = stats.map(|stat| std::fs::read_to_string(stat).unwrap());
        stats.all(|stat| stat.contains(") T "))
    }

    pub(super) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(super) fn url(&self) -> String {
        format!("memcached://{}", self.address())
    }

    /// A client that waits as long as applications do.
    pub(super) fn client(&self) -> SharedStatus {
        SharedStatus::memcached(&self.url()).unwrap()
    }

    /// A client that a busy machine can't hurry.
    pub(super) fn patient_client(&self) -> SharedStatus {
        patient(&self.url())
    }

    /// What it answers to some bytes, up to where the answer ends with `end`.
    pub(super) fn say(&self, request: &[u8], end: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        stream.write_all(request).unwrap();
        let mut answer = vec![];
        while !answer.ends_with(end.as_bytes()) {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("memcached answers");
            answer.push(byte[0]);
        }
        String::from_utf8(answer).unwrap()
    }

    pub(super) fn put(&self, key: &str, value: &[u8]) {
        let mut request = format!("set {key} 0 60 {}\r\n", value.len()).into_bytes();
        request.extend_from_slice(value);
        request.extend_from_slice(b"\r\n");
        assert_eq!(self.say(&request, "\r\n"), "STORED\r\n");
    }

    pub(super) fn get(&self, key: &str) -> String {
        self.say(format!("get {key}\r\n").as_bytes(), "END\r\n")
    }

    pub(super) fn delete(&self, key: &str) {
        self.say(format!("delete {key}\r\n").as_bytes(), "\r\n");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(super) fn patient(url: &str) -> SharedStatus {
    SharedStatus::at(Address::parse(url).unwrap(), Duration::from_secs(10))
}
