//! Starting ranks on this machine, and letting other machines take part.

use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use foretrain_core::{InputError, Result};

use super::control::{Hello, Order, PATIENCE, lost, prepare, read_share, write_share};
use crate::link::{PeerProgram, Process};

/// How long other machines may take to connect.
const MACHINES_PATIENCE: Duration = Duration::from_secs(300);
/// How long a rank may take to answer: a single run of the largest sizes over slow links.
const ANSWER_PATIENCE: Duration = Duration::from_secs(600);

/// A rank, seen from the coordinator.
pub(super) struct Member {
    pub(super) control: TcpStream,
    /// Where its left neighbour may connect.
    pub(super) data: SocketAddr,
    machine: u64,
}

impl Member {
    /// For messages.
    pub(super) fn name(&self, rank: usize) -> String {
        format!("rank {rank} on {}", self.data.ip())
    }
}

/// All ranks, in order of their machines.
pub(super) struct Team {
    pub(super) members: Vec<Member>,
    // Ended after the connections.
    _processes: Vec<Process>,
}

impl Team {
    /// Starts ranks here, waits for other machines to connect and start theirs.
    pub(super) fn gather(
        ranks: u32,
        machines: Option<(SocketAddr, u32)>,
        program: &PeerProgram,
    ) -> Result<Self> {
        let (address, count) = machines.unwrap_or((SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), 1));
        if count == 0 || !ranks.is_multiple_of(count) {
            return Err(InputError::new(format!(
                "{ranks} ranks cannot be spread evenly over {count} machines"
            ))
            .hint("let the largest number of --procs be a multiple of --machines"));
        }
        let listener = TcpListener::bind(address).map_err(|error| {
            InputError::new(format!("cannot listen on {address}: {error}"))
                .hint("give an address of this machine that the others reach, and a free port")
        })?;
        let failed = |error: std::io::Error| InputError::new(format!("cannot listen: {error}"));
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let token = RandomState::new().hash_one(std::process::id());
        let each = ranks / count;
        let mut processes = (0..each)
            .map(|_| start_rank(program, address, token, 0))
            .collect::<Result<Vec<_>>>()?;
        let mut arrivals = Arrivals { token, each, members: Vec::new(), told: Vec::new() };
        let wanted = (ranks as usize, count as usize - 1);
        let patience = if count > 1 { MACHINES_PATIENCE } else { PATIENCE };
        let until = Instant::now() + patience;
        while (arrivals.members.len(), arrivals.told.len()) != wanted {
            arrivals.next(&listener, wanted.1)?;
            if let Some(how) = processes.iter_mut().find_map(Process::end) {
                return Err(InputError::new(format!("a rank ended before it connected: {how}"))
                    .hint("see what it said above"));
            }
            if Instant::now() > until {
                let (ranks, machines) = (arrivals.members.len(), arrivals.told.len() + 1);
                return Err(InputError::new(format!(
                    "only {machines} of {count} machines and {ranks} of {} ranks came within {} s",
                    wanted.0,
                    patience.as_secs()
                ))
                .hint(format!(
                    "run `foretrain capture comm --connect {address}` on each of the others"
                )));
            }
        }
        let mut members = arrivals.members;
        members.sort_by_key(|member| member.machine);
        Ok(Self { members, _processes: processes })
    }

    /// Machines that the first `ranks` ranks are on.
    pub(super) fn machines_of(&self, ranks: u32) -> u32 {
        let mut machines: Vec<u64> =
            self.members.iter().take(ranks as usize).map(|member| member.machine).collect();
        machines.dedup();
        machines.len() as u32
    }

    /// Lets everybody go.
    pub(super) fn end(mut self) {
        for member in &mut self.members {
            // One that is gone needs no farewell.
            let _ = Order::End.write(&mut member.control);
        }
    }
}

fn start_rank(
    program: &PeerProgram,
    coordinator: SocketAddr,
    token: u64,
    machine: u64,
) -> Result<Process> {
    Process::start(program, &[coordinator.to_string(), token.to_string(), machine.to_string()])
}

/// Who has connected.
struct Arrivals {
    token: u64,
    /// Ranks of each machine.
    each: u32,
    members: Vec<Member>,
    /// Connections of other machines, which stay open as long as they are needed.
    told: Vec<TcpStream>,
}

impl Arrivals {
    /// Lets one in, if somebody is there. Who does not speak this language is hung up on.
    fn next(&mut self, listener: &TcpListener, machines: usize) -> Result<()> {
        let mut stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                thread::sleep(Duration::from_millis(1));
                return Ok(());
            }
            Err(error) => return Err(lost("a machine that connected", &error)),
        };
        // A stranger who says nothing may hold up the others for as long only.
        const HELLO_PATIENCE: Duration = Duration::from_secs(2);
        let hello = prepare(&stream, Some(HELLO_PATIENCE)).and_then(|()| Hello::read(&mut stream));
        match hello {
            Ok(Hello::Machine) if self.told.len() < machines => {
                let machine = self.told.len() as u64 + 1;
                let share = write_share(u64::from(self.each), machine, self.token, &mut stream);
                if share.is_ok() {
                    self.told.push(stream);
                }
            }
            Ok(Hello::Rank { token, machine, port }) if token == self.token => {
                let peer = stream.peer_addr();
                let set = peer
                    .and_then(|peer| stream.set_read_timeout(Some(ANSWER_PATIENCE)).map(|()| peer));
                let peer = set.map_err(|error| lost("a rank", &error))?;
                let data = SocketAddr::new(peer.ip(), port);
                self.members.push(Member { control: stream, data, machine });
            }
            _ => {}
        }
        Ok(())
    }
}

/// Takes part from another machine in what [`measure_ring`](super::measure_ring) measures: starts as
/// many ranks as it says, and returns when they have ended.
///
/// # Errors
/// If nobody listens there, or a rank fails.
pub fn help_ring(coordinator: SocketAddr, program: &PeerProgram) -> Result<()> {
    let failed = |error: std::io::Error| {
        InputError::new(format!("cannot take part in a measurement at {coordinator}: {error}"))
            .hint("start it there with `foretrain capture comm --listen HOST:PORT --machines N`")
    };
    let mut control = connect(coordinator).map_err(failed)?;
    prepare(&control, Some(PATIENCE)).map_err(failed)?;
    Hello::Machine.write(&mut control).map_err(failed)?;
    let [ranks, machine, token] = read_share(&mut control).map_err(failed)?;
    let mut processes = (0..ranks.min(1024))
        .map(|_| start_rank(program, coordinator, token, machine))
        .collect::<Result<Vec<_>>>()?;
    loop {
        let ends: Vec<Option<String>> = processes.iter_mut().map(Process::end).collect();
        if ends.iter().all(Option::is_some) {
            return match ends.into_iter().flatten().find(|how| !how.ends_with(": 0")) {
                Some(how) => {
                    Err(InputError::new(format!("a rank failed: {how}"))
                        .hint("see what it said above"))
                }
                None => Ok(()),
            };
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Connects; a coordinator that is not there yet may come.
fn connect(coordinator: SocketAddr) -> std::io::Result<TcpStream> {
    let until = Instant::now() + PATIENCE;
    loop {
        match TcpStream::connect_timeout(&coordinator, PATIENCE) {
            Err(error)
                if error.kind() == ErrorKind::ConnectionRefused && Instant::now() < until =>
            {
                thread::sleep(Duration::from_millis(200));
            }
            other => return other,
        }
    }
}
