//! The requests: who asks, in which context, and what the page then shows.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use axum::extract::rejection::FormRejection;
use axum::extract::{DefaultBodyLimit, Extension, Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Form, Router};
use diesel_routed::{Consistency, Context};
use serde::Deserialize;

use crate::Outcome;
use crate::db::{Database, Entry, Reading, Step, Turn};
use crate::journal::{self, Journal, Who};
use crate::pages::{self, Draft, View};
use crate::replicas::Replicas;
use crate::visitors::{Visitor, VisitorId, Visitors};

const COOKIE: &str = "guestbook";
const MAX_BODY: usize = 16 * 1024;
pub const MAX_NAME: usize = 40;
pub const MAX_MESSAGE: usize = 500;

/// The delays of replication that can be chosen, in seconds.
pub const LAGS: [u64; 3] = [0, 2, 5];

/// Nothing comes from elsewhere, and nothing a visitor writes can become a script.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
                      img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

pub struct App {
    pub database: Database,
    visitors: Mutex<Visitors>,
    journal: Mutex<Journal>,
}

impl App {
    pub fn new(database: Database) -> App {
        if let Some(replicas) = &database.replicas {
            // so that the first signature shows what this is about
            replicas.set_lag(Duration::from_secs(LAGS[1]));
        }
        App {
            database,
            visitors: Mutex::default(),
            journal: Mutex::default(),
        }
    }

    pub fn replicas(&self) -> Option<&Replicas> {
        self.database.replicas.as_ref()
    }

    pub fn journal(&self) -> Journal {
        locked(&self.journal).clone()
    }

    /// Writes down what a request did.
    fn note(&self, who: Who, did: &'static str, steps: Result<&[Step], &str>) {
        locked(&self.journal).add(journal::Request {
            at: Instant::now(),
            who,
            did,
            steps: steps.map(<[_]>::to_vec).map_err(str::to_owned),
        });
    }

    /// Reads as this visitor: in his context, so that he sees what he wrote.
    fn read_as_visitor(&self, visitor: &Visitor) -> Result<Reading, String> {
        let read = || self.database.store.read(visitor.consistency);
        self.noted(Who::Visitor(visitor.id), visitor.context.run(read))
    }

    /// Reads as somebody else: a new context, in which nothing was written.
    fn read_as_other(&self, visitor: &Visitor) -> Result<Reading, String> {
        let read = || self.database.store.read(Consistency::Session);
        self.noted(Who::Other(visitor.id), Context::new().run(read))
    }

    fn noted(&self, who: Who, reading: Outcome<Reading>) -> Result<Reading, String> {
        let reading = reading.map_err(|error| error.to_string());
        let steps = reading.as_ref().map(|reading| &reading.steps[..]);
        self.note(who, "read", steps.map_err(String::as_str));
        reading
    }

    fn sign(&self, visitor: &Visitor, draft: &Draft) -> Outcome<()> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let entry = Entry {
            id: rand::random_range(1..i64::MAX),
            signed_at: i64::try_from(now.as_millis())?,
            name: draft.name.clone(),
            message: draft.message.clone(),
        };
        let signed = visitor.context.run(|| self.database.store.sign(&entry));
        let error = signed.as_ref().err().map(ToString::to_string);
        self.note(
            Who::Visitor(visitor.id),
            "signed",
            signed
                .as_deref()
                .map_err(|_| error.as_deref().unwrap_or("")),
        );
        signed?;
        locked(&self.visitors).change(visitor.id, |visitor| visitor.signed = Some(entry));
        Ok(())
    }

    /// The page, with what this visitor and another one read now.
    fn page(&self, visitor: &Visitor, draft: &Draft) -> String {
        let view = View { app: self, visitor };
        let mine = self.read_as_visitor(visitor);
        let others = self.read_as_other(visitor);
        pages::page(&view, draft, &mine, &others)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/sign", post(sign))
        .route("/settings", post(settings))
        .route("/entries/{reader}", get(entries))
        .route("/live", get(live))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(from_fn_with_state(Arc::clone(&app), know_visitor))
        .route(
            "/app.css",
            get(|| asset("text/css", include_str!("app.css"))),
        )
        .route(
            "/app.js",
            get(|| asset("text/javascript", include_str!("app.js"))),
        )
        .layer(from_fn(guarded))
        .with_state(app)
}

/// Looks the visitor up by the cookie, for the handlers; a new one gets a cookie.
async fn know_visitor(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let cookie = cookie(request.headers());
    let visitor = locked(&app.visitors).welcome(cookie);
    let id = visitor.id;
    request.extensions_mut().insert(visitor);
    let mut response = next.run(request).await;
    if cookie != Some(id) {
        let text = format!("{COOKIE}={}; Path=/; HttpOnly; SameSite=Lax", id.to_text());
        let value = HeaderValue::try_from(text).expect("hexadecimal digits");
        response.headers_mut().append(header::SET_COOKIE, value);
    }
    response
}

fn cookie(headers: &HeaderMap) -> Option<VisitorId> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(name, _)| *name == COOKIE)
        .and_then(|(_, id)| VisitorId::parse(id))
}

async fn guarded(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn asset(kind: &'static str, text: &'static str) -> impl IntoResponse {
    (
        [(header::CONTENT_TYPE, format!("{kind}; charset=utf-8"))],
        text,
    )
}

async fn page(State(app): State<Arc<App>>, Extension(visitor): Extension<Visitor>) -> Response {
    blocking(move || Html(app.page(&visitor, &Draft::default())).into_response()).await
}

#[derive(Deserialize)]
struct Signature {
    name: String,
    message: String,
}

async fn sign(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    form: Result<Form<Signature>, FormRejection>,
) -> Response {
    blocking(move || {
        let mut draft = match form {
            Ok(Form(Signature { name, message })) => checked(&name, &message),
            Err(_) => Draft::rejected("That was too long, or no form of this page. Try again."),
        };
        let mut status = StatusCode::UNPROCESSABLE_ENTITY;
        if draft.is_fine() {
            match app.sign(&visitor, &draft) {
                // a reload must not sign again
                Ok(()) => return Redirect::to("/").into_response(),
                Err(error) => draft.trouble = Some(format!("Your entry was not taken: {error}.")),
            }
            status = StatusCode::SERVICE_UNAVAILABLE;
        }
        (status, Html(app.page(&visitor, &draft))).into_response()
    })
    .await
}

/// Tidies what was typed, and says what is wrong with it.
fn checked(name: &str, message: &str) -> Draft {
    let printable = |c: &char| !c.is_control();
    let name: String = name.trim().chars().filter(printable).collect();
    let lines = message.trim().replace("\r\n", "\n");
    let allowed = |c: &char| *c == '\n' || !c.is_control();
    let message: String = lines.chars().filter(allowed).collect();
    let wrong = |what: &str, text: &str, most: usize| match text.chars().count() {
        0 => Some(format!("Please enter {what}.")),
        length if length > most => Some(format!(
            "That has {length} characters; there is room for {most}."
        )),
        _ => None,
    };
    Draft {
        name_trouble: wrong("your name", &name, MAX_NAME),
        message_trouble: wrong("a message", &message, MAX_MESSAGE),
        trouble: None,
        name,
        message,
    }
}

#[derive(Deserialize)]
struct Settings {
    lag: Option<u64>,
    reads: Option<String>,
    /// The names of replicas.
    drain: Option<String>,
    resume: Option<String>,
}

async fn settings(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Form(settings): Form<Settings>,
) -> Response {
    if let (Some(lag), Some(replicas)) = (settings.lag, app.replicas()) {
        if !LAGS.contains(&lag) {
            return (StatusCode::UNPROCESSABLE_ENTITY, "no such delay").into_response();
        }
        replicas.set_lag(Duration::from_secs(lag));
    }
    for (replica, turn) in [(settings.drain, Turn::Out), (settings.resume, Turn::In)] {
        let turned = replica.map(|replica| app.database.store.rotate(&replica, turn));
        if let Some(Err(error)) = turned {
            return (StatusCode::UNPROCESSABLE_ENTITY, error.to_string()).into_response();
        }
    }
    let consistency = match settings.reads.as_deref() {
        Some("own-writes") => Some(Consistency::Session),
        Some("eventual") => Some(Consistency::Eventual),
        _ => None,
    };
    if let Some(consistency) = consistency {
        locked(&app.visitors).change(visitor.id, |visitor| visitor.consistency = consistency);
    }
    Redirect::to("/").into_response()
}

/// The entries as this visitor or another one sees them now: a part of the page.
async fn entries(
    State(app): State<Arc<App>>,
    Extension(visitor): Extension<Visitor>,
    Path(reader): Path<String>,
) -> Response {
    blocking(move || {
        let view = View {
            app: &app,
            visitor: &visitor,
        };
        match &*reader {
            "you" => Html(pages::mine(&view, &app.read_as_visitor(&visitor))).into_response(),
            "other" => Html(pages::others(&view, &app.read_as_other(&visitor))).into_response(),
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    })
    .await
}

/// What changes by itself: a part of the page. Asks no database.
async fn live(State(app): State<Arc<App>>, Extension(visitor): Extension<Visitor>) -> Html<String> {
    let view = View {
        app: &app,
        visitor: &visitor,
    };
    Html(pages::live(&view))
}

/// Runs `f` where it may wait for a database.
///
/// `f` enters its context itself: the thread is another one for each request, and a context
/// belongs to the thread that entered it.
async fn blocking(f: impl FnOnce() -> Response + Send + 'static) -> Response {
    let answer = tokio::task::spawn_blocking(f).await;
    answer.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}
