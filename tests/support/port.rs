//! Free TCP ports that stay free.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};

/// A TCP port of 127.0.0.1 that no other harness takes while this value lives, even while the server
/// on it is down.
///
/// The claim is a UDP socket bound to the same number: it holds between processes and ends with its
/// own. Ports are below the system's ephemeral range, where a client's socket could get in between.
pub struct Port {
    number: u16,
    _claim: UdpSocket,
}

impl Port {
    pub fn claim() -> Port {
        let top = ephemeral_start()
            .filter(|start| *start > 12_000)
            .unwrap_or(u16::MAX);
        for _ in 0..1_000 {
            let number =
                10_000 + u16::try_from(random() % u64::from(top - 10_000)).expect("below top");
            let Ok(claim) = UdpSocket::bind((Ipv4Addr::LOCALHOST, number)) else {
                continue;
            };
            if TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok() {
                return Port {
                    number,
                    _claim: claim,
                };
            }
        }
        panic!("no free port on 127.0.0.1");
    }

    pub fn number(&self) -> u16 {
        self.number
    }
}

/// A random number; the standard library seeds its hashers from the system.
pub fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn ephemeral_start() -> Option<u16> {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    range.split_whitespace().next()?.parse().ok()
}
