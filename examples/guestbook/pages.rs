//! The HTML. Whatever a visitor or a server said goes through `escape`.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use diesel_routed::{Consistency, NodeState, NodeStatus, Reason, Role, Route};

use crate::db::{Entry, Reading};
use crate::journal::{Request, Who};
use crate::visitors::Visitor;
use crate::web::{App, LAGS, MAX_MESSAGE, MAX_NAME};

/// What a page is made for.
pub struct View<'a> {
    pub app: &'a App,
    pub visitor: &'a Visitor,
}

/// What was typed into the form, and what is wrong with it.
#[derive(Default)]
pub struct Draft {
    pub name: String,
    pub message: String,
    pub name_trouble: Option<String>,
    pub message_trouble: Option<String>,
    pub trouble: Option<String>,
}

impl Draft {
    pub fn rejected(trouble: &str) -> Draft {
        Draft {
            trouble: Some(trouble.to_owned()),
            ..Draft::default()
        }
    }

    pub fn is_fine(&self) -> bool {
        self.name_trouble.is_none() && self.message_trouble.is_none() && self.trouble.is_none()
    }
}

type Read = Result<Reading, String>;

pub fn page(view: &View, draft: &Draft, mine_read: &Read, others_read: &Read) -> String {
    let database = view.app.database.name;
    let replicas = view.app.database.store.nodes().len() - 1;
    let plural = if replicas == 1 { "" } else { "s" };
    fill(
        include_str!("guestbook.html"),
        &[
            ("database", database.into()),
            ("replicas", format!("{replicas} replica{plural}").into()),
            ("form", form(draft).into()),
            ("settings", settings(view).into()),
            ("mine", mine(view, mine_read).into()),
            ("others", others(view, others_read).into()),
            ("live", live(view).into()),
        ],
    )
}

/// Puts values where the template says `{{name}}`. What a value contains is not looked at again.
fn fill(template: &str, values: &[(&str, Cow<str>)]) -> String {
    let mut parts = template.split("{{");
    let mut page = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once("}}").expect("the template is our own");
        let value = values.iter().find(|(known, _)| *known == name);
        page += &value.expect("the template is our own").1;
        page += rest;
    }
    page
}

fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            _ => safe.push(c),
        }
    }
    safe
}

fn form(draft: &Draft) -> String {
    let alert = |id: &str, trouble: &Option<String>| match trouble {
        Some(trouble) => format!(
            r#"<p class="trouble" id="{id}" role="alert">{}</p>"#,
            escape(trouble)
        ),
        None => String::new(),
    };
    let marks = |id: &str, trouble: &Option<String>| match trouble {
        Some(_) => format!(r#" aria-invalid="true" aria-describedby="{id}""#),
        None => String::new(),
    };
    fill(
        include_str!("form.html"),
        &[
            ("trouble", alert("trouble", &draft.trouble).into()),
            ("name", escape(&draft.name).into()),
            (
                "name marks",
                marks("name-trouble", &draft.name_trouble).into(),
            ),
            (
                "name trouble",
                alert("name-trouble", &draft.name_trouble).into(),
            ),
            ("name room", MAX_NAME.to_string().into()),
            ("message", escape(&draft.message).into()),
            (
                "message marks",
                marks("message-trouble", &draft.message_trouble).into(),
            ),
            (
                "message trouble",
                alert("message-trouble", &draft.message_trouble).into(),
            ),
            ("message room", MAX_MESSAGE.to_string().into()),
        ],
    )
}

fn settings(view: &View) -> String {
    let own_writes = view.visitor.consistency == Consistency::Session;
    let reads = [
        button("reads", "own-writes", "on", own_writes),
        button("reads", "eventual", "off (eventual)", !own_writes),
    ];
    let mut html = switch("Read your own writes", &reads.concat());
    if let Some(replicas) = view.app.replicas() {
        let now = replicas.lag().as_secs();
        let lags = LAGS.map(|lag| button("lag", &lag.to_string(), &format!("{lag} s"), lag == now));
        html += &switch("Replicas are late by", &lags.concat());
    }
    let nodes = view.app.database.store.nodes();
    for replica in nodes.iter().filter(|node| node.role == Role::Replica) {
        let name = escape(&replica.name);
        let drained = replica.state == NodeState::Drained;
        let turns = [
            button("resume", &name, "answers", !drained),
            button("drain", &name, "is drained", drained),
        ];
        html += &switch(&name, &turns.concat());
    }
    html
}

/// Buttons of which one is pressed; they need no script.
fn switch(title: &str, buttons: &str) -> String {
    format!(
        r#"<form class="switch" method="post" action="/settings"><fieldset><legend>{title}</legend>{buttons}</fieldset></form>"#
    )
}

fn button(name: &str, value: &str, text: &str, pressed: bool) -> String {
    format!(r#"<button name="{name}" value="{value}" aria-pressed="{pressed}">{text}</button>"#)
}

/// The entries as the visitor of the page sees them.
pub fn mine(view: &View, read: &Read) -> String {
    reading(view, "you", read)
}

/// The entries as another visitor sees them.
pub fn others(view: &View, read: &Read) -> String {
    reading(view, "other", read)
}

fn reading(view: &View, id: &str, read: &Read) -> String {
    let reading = match read {
        Ok(reading) => reading,
        Err(error) => {
            return format!(
                r#"<div id="{id}"><p class="trouble" role="alert">This could not be read: {}.</p></div>"#,
                escape(error)
            );
        }
    };
    let signed = view.visitor.signed.as_ref();
    let missing = signed.is_some_and(|entry| reading.misses(entry));
    let mut list = String::new();
    if missing {
        list +=
            r#"<li class="ghost">The entry you just signed has not reached this node yet.</li>"#;
    } else if reading.newest.is_empty() {
        list += r#"<li class="ghost">No entries yet. Be the first!</li>"#;
    }
    for shown in &reading.newest {
        let mine = signed.is_some_and(|signed| signed.id == shown.id);
        list += &entry(shown, if mine { "mine" } else { "" });
    }
    let older = reading.total - i64::try_from(reading.newest.len()).unwrap_or(0);
    let older = match older {
        1.. => format!(r#"<p class="older">and {older} older</p>"#),
        _ => String::new(),
    };
    let marks = if missing { " data-missing" } else { "" };
    let answer = reading.steps.first().map(|step| answer(&step.route));
    format!(
        r#"<div id="{id}"{marks}>{}<ol class="entries">{list}</ol>{older}</div>"#,
        answer.unwrap_or_default()
    )
}

/// Which node answered, and why that one.
fn answer(route: &Route) -> String {
    format!(
        r#"<p class="answer">{} <span>{}</span></p>"#,
        badge(&route.node, route.role),
        why(&route.reason)
    )
}

fn why(reason: &Reason) -> String {
    match reason {
        Reason::NotCaughtUp => {
            "You have just written, and replicas may miss it: so the primary answers.".into()
        }
        Reason::Distributed => "A replica answers; the primary is spared.".into(),
        Reason::NoReplica => "No replica answers, so the primary does.".into(),
        Reason::Lagging => "No replica is fresh enough, so the primary answers.".into(),
        other => escape(&other.to_string()),
    }
}

fn badge(node: &str, role: Role) -> String {
    format!(r#"<span class="badge {role}">{}</span>"#, escape(node))
}

fn entry(entry: &Entry, class: &str) -> String {
    format!(
        r#"<li class="entry {class}"><p class="message">{}</p><p class="by">{} <span>{}</span></p></li>"#,
        escape(&entry.message),
        escape(&entry.name),
        when(Duration::from_millis(entry.signed_at.unsigned_abs()))
    )
}

/// A time since 1970: the hour if it is today's, else how long ago.
fn when(time: Duration) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let days = |time: Duration| time.as_secs() / 86_400;
    match days(now.unwrap_or_default()).saturating_sub(days(time)) {
        0 => {
            let (hours, minutes) = (time.as_secs() / 3600 % 24, time.as_secs() / 60 % 60);
            format!("{hours:02}:{minutes:02}:{:02} UTC", time.as_secs() % 60)
        }
        1 => "yesterday".to_owned(),
        days => format!("{days} days ago"),
    }
}

fn ago(age: Duration) -> String {
    match age.as_secs() {
        0 => "just now".to_owned(),
        _ => format!("{} ago", long(age)),
    }
}

fn long(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => format!("{} min", seconds / 60),
    }
}

/// The picture of the nodes and the list of what they were asked.
pub fn live(view: &View) -> String {
    let journal = view.app.journal();
    let list: String = journal.requests().map(|done| request(view, done)).collect();
    let list = match &*list {
        "" => r#"<p class="older">Nothing was asked yet.</p>"#.to_owned(),
        list => format!("<ol>{list}</ol>"),
    };
    let map = map(view, journal.latest_node());
    format!(r#"{}{map}<div id="journal">{list}</div>"#, sticky(view))
}

/// Whether the visitor's context keeps his reads on the primary.
fn sticky(view: &View) -> String {
    let sticky = view.visitor.context.is_sticky();
    let (marks, text) = match (sticky, view.visitor.consistency) {
        (false, _) => (
            "",
            "Your context has nothing to wait for: replicas answer you.",
        ),
        (true, Consistency::Session) => (
            r#" class="waits" data-sticky"#,
            "Your context remembers a write: the primary answers you until the replicas are sure to have it.",
        ),
        (true, _) => (
            " data-sticky",
            "Your context remembers a write, but you asked for eventual reads: replicas answer you all the same.",
        ),
    };
    format!(r#"<p id="sticky"{marks}>{text}</p>"#)
}

fn map(view: &View, latest: Option<&str>) -> String {
    let nodes = view.app.database.store.nodes();
    let of = |role: Role| -> String {
        let nodes = nodes.iter().filter(|node| node.role == role);
        nodes.map(|shown| node(shown, latest)).collect()
    };
    let flow = match view.app.replicas().map(|replicas| replicas.lag().as_secs()) {
        None => "copied as fast as the servers can".to_owned(),
        Some(0) => "copied at once".to_owned(),
        Some(lag) => format!("copied {lag} s later"),
    };
    format!(
        r#"<div id="map"><div class="row">{}</div><p class="flow"><span>{flow}</span></p><div class="row">{}</div></div>"#,
        of(Role::Primary),
        of(Role::Replica)
    )
}

fn node(node: &NodeStatus, latest: Option<&str>) -> String {
    let latest = if latest == Some(&node.name) {
        " latest"
    } else {
        ""
    };
    let own = match (node.role, node.lag) {
        (Role::Primary, _) => ("writes", node.writes.to_string()),
        (Role::Replica, Some(lag)) => ("lag", format!("{:.1} s", lag.as_secs_f64())),
        (Role::Replica, None) => ("lag", "-".to_owned()),
    };
    let numbers = [
        ("reads", node.reads.to_string()),
        own,
        ("in use", node.in_flight.to_string()),
    ];
    let numbers =
        numbers.map(|(what, number)| format!("<div><dt>{what}</dt><dd>{number}</dd></div>"));
    let error = node.last_error.as_ref().map(|error| escape(error));
    let error = error.map_or_else(String::new, |error| {
        format!(r#"<p class="error">{error}</p>"#)
    });
    format!(
        r#"<div class="node {role}{latest}"><p class="name">{}</p><p class="state">{} for {}</p><dl>{}</dl>{error}</div>"#,
        escape(&node.name),
        node.state,
        long(node.state_since),
        numbers.concat(),
        role = node.role
    )
}

fn request(view: &View, done: &Request) -> String {
    let who = match done.who {
        Who::Visitor(id) if id == view.visitor.id => "You",
        Who::Other(id) if id == view.visitor.id => "Another visitor",
        _ => "Someone else",
    };
    let mut steps = String::new();
    match &done.steps {
        Ok(done) => done.iter().for_each(|step| {
            let badge = badge(&step.route.node, step.route.role);
            let reason = escape(&step.route.reason.to_string());
            let statement = step.statement;
            steps +=
                &format!("<li>{badge}<p><code>{statement}</code> <span>{reason}</span></p></li>");
        }),
        Err(error) => steps += &format!(r#"<li class="trouble">{}</li>"#, escape(error)),
    }
    format!(
        r#"<li><p><strong>{who}</strong> {} <span>{}</span></p><ol>{steps}</ol></li>"#,
        done.did,
        ago(done.at.elapsed())
    )
}
