//! A guestbook on a primary and two replicas: sign it, and watch which node answers and why.
//!
//! `cargo run --example guestbook` needs nothing installed: the nodes are SQLite files in a
//! temporary directory, and the example itself plays the part of replication, as late as you
//! like. With `DATABASE_URL` and `DATABASE_REPLICA_URLS` set it runs on servers instead:
//!
//! * `cargo run --example dev_cluster -- postgres 2` starts some and prints these variables,
//! * `cargo run --example guestbook --features postgres` (or `mysql`) uses them.
//!
//! `PORT` chooses the port. `--smoke` plays the story by itself over HTTP, and says `ok`.
//!
//! The routing is in `db.rs`, the contexts are in `visitors.rs` and `web.rs`; the rest is a web page.

#![forbid(unsafe_code)]

mod db;
mod journal;
mod pages;
mod replicas;
mod smoke;
mod visitors;
mod web;

use std::error::Error;
use std::io::ErrorKind;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::web::App;

/// A result whose error is for people to read.
pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const PORT: u16 = 3000;

const USAGE: &str = "usage: cargo run --example guestbook [-- --smoke]";

#[derive(Clone, Copy)]
enum Task {
    Serve,
    Smoke,
}

fn main() -> ExitCode {
    let done = task().and_then(|task| {
        let app = Arc::new(App::new(db::open()?));
        tokio::runtime::Runtime::new()?.block_on(run(task, app))
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("guestbook: {error}");
            ExitCode::FAILURE
        }
    }
}

fn task() -> Outcome<Task> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] if std::env::var_os("GUESTBOOK_SMOKE").is_none_or(|set| set != "1") => Ok(Task::Serve),
        [] | ["--smoke"] => Ok(Task::Smoke),
        _ => Err(USAGE.into()),
    }
}

/// Returns when the story has been played, or else at Ctrl-C. The temporary files go with the app.
async fn run(task: Task, app: Arc<App>) -> Outcome<()> {
    let (stop, stopped) = oneshot::channel();
    let mut stop = Some(stop);
    ctrlc::set_handler(move || {
        if let Some(stop) = stop.take() {
            // nobody listens any more if the server has failed meanwhile
            let _ = stop.send(());
        }
    })?;
    let listener = match task {
        Task::Serve => listen().await?,
        Task::Smoke => TcpListener::bind(("127.0.0.1", 0)).await?,
    };
    let address = listener.local_addr()?;
    let delay = match app.replicas() {
        Some(_) => smoke::Delay::Chosen,
        None => smoke::Delay::Unknown,
    };
    let played = async move {
        match task {
            Task::Serve => {
                println!("Open http://{address} in a browser. Ctrl-C ends it.");
                std::future::pending().await
            }
            Task::Smoke => tokio::task::spawn_blocking(move || smoke::play(address, delay)).await?,
        }
    };
    tokio::select! {
        served = axum::serve(listener, web::router(app)) => Ok(served?),
        played = played => played.map(|()| println!("ok")),
        _ = stopped => match task {
            Task::Serve => Ok(()),
            Task::Smoke => Err("stopped before the end of the story".into()),
        },
    }
}

/// Takes the port of `PORT`, or any free one if another program has it.
async fn listen() -> Outcome<TcpListener> {
    let port = match std::env::var("PORT") {
        Ok(port) => port
            .parse()
            .map_err(|_| format!("PORT={port} is no port"))?,
        Err(_) => PORT,
    };
    match TcpListener::bind(("127.0.0.1", port)).await {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            println!("Port {port} is taken by another program; here is a free one.");
            Ok(TcpListener::bind(("127.0.0.1", 0)).await?)
        }
        bound => Ok(bound?),
    }
}
