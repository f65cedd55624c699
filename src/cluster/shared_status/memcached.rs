//! Three commands of memcached's text protocol, each answered before a deadline.
//!
//! No client library is used: what is needed is small, and must end in time and in little memory
//! whatever answers.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The longest line of an answer: `VALUE`, a key of at most 250 bytes and two numbers.
const LONGEST_LINE: u64 = 300;

/// The largest value that is looked at; a larger one is not ours.
const LARGEST_VALUE: u64 = 64;

/// A connection to memcached. After an error it is not to be used again, since its answers could
/// belong to other questions.
#[derive(Debug)]
pub(super) struct Memcached(BufReader<Timed>);

impl Memcached {
    pub(super) fn new(stream: TcpStream, deadline: Instant) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(Timed { stream, deadline })))
    }

    /// All that follows fails after this moment.
    pub(super) fn set_deadline(&mut self, deadline: Instant) {
        self.0.get_mut().deadline = deadline;
    }

    /// The values of some keys; one that is too large to be ours is absent.
    pub(super) fn get<const N: usize>(
        &mut self,
        keys: [&str; N],
    ) -> io::Result<[Option<Vec<u8>>; N]> {
        self.send(format!("get {}\r\n", keys.join(" ")).as_bytes())?;
        let mut values = [const { None }; N];
        loop {
            let line = self.line()?;
            if line == "END" {
                return Ok(values);
            }
            let header: Vec<&str> = line.split(' ').collect();
            let ["VALUE", key, _flags, length] = header[..] else {
                return Err(unexpected());
            };
            let length = length.parse().map_err(|_| unexpected())?;
            let place = keys.iter().position(|wanted| *wanted == key);
            // each key is answered once
            let place = place.filter(|place| values[*place].is_none());
            values[place.ok_or_else(unexpected)?] = Some(self.value(length)?);
        }
    }

    /// Stores a value for some seconds; `false` if there is one.
    pub(super) fn add(&mut self, key: &str, value: &[u8], seconds: u32) -> io::Result<bool> {
        self.put("add", key, value, seconds)
    }

    /// Stores a value for some seconds, in place of one that is there.
    pub(super) fn set(&mut self, key: &str, value: &[u8], seconds: u32) -> io::Result<()> {
        let stored = self.put("set", key, value, seconds)?;
        stored.then_some(()).ok_or_else(unexpected)
    }

    fn put(&mut self, command: &str, key: &str, value: &[u8], seconds: u32) -> io::Result<bool> {
        let mut request = format!("{command} {key} 0 {seconds} {}\r\n", value.len()).into_bytes();
        request.extend_from_slice(value);
        request.extend_from_slice(b"\r\n");
        self.send(&request)?;
        match self.line()?.as_str() {
            "STORED" => Ok(true),
            "NOT_STORED" => Ok(false),
            _ => Err(unexpected()),
        }
    }

    fn send(&mut self, request: &[u8]) -> io::Result<()> {
        // what is left of an answer would be taken for the next one
        if !self.0.buffer().is_empty() {
            return Err(unexpected());
        }
        self.0.get_mut().write_all(request)
    }

    /// One line of an answer, without its end.
    fn line(&mut self) -> io::Result<String> {
        let mut line = vec![];
        let mut bounded = self.0.by_ref().take(LONGEST_LINE);
        bounded.read_until(b'\n', &mut line)?;
        let line = line.strip_suffix(b"\r\n").ok_or_else(unexpected)?;
        String::from_utf8(line.to_vec()).map_err(|_| unexpected())
    }

    /// A value of this length and the end of its line; empty if it is too large.
    fn value(&mut self, length: u64) -> io::Result<Vec<u8>> {
        let mut value = vec![];
        let mut bounded = self.0.by_ref().take(length);
        match length {
            ..=LARGEST_VALUE => bounded.read_to_end(&mut value).map(drop)?,
            _ => io::copy(&mut bounded, &mut io::sink()).map(drop)?,
        }
        match bounded.limit() == 0 && self.line()?.is_empty() {
            true => Ok(value),
            false => Err(unexpected()),
        }
    }
}

fn unexpected() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "an answer that is not memcached's",
    )
}

/// A stream on which nothing takes longer than until the deadline: a timeout of its own for each
/// read would let a server that sends a byte now and then go on for ever.
#[derive(Debug)]
struct Timed {
    stream: TcpStream,
    deadline: Instant,
}

impl Timed {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => Ok(Some(left)),
        }
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer)
    }
}

impl Write for Timed {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
