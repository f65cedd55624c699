//! What two tabs of a real browser see while the replica is late.

use crate::client::Client;
use crate::gate::Gate;
use crate::site::{SOON, Site, dir};
use crate::support::wait_until;
use crate::webdriver::Browser;

#[test]
fn two_tabs_of_a_browser_see_what_either_has_written() {
    let site = Site::start(env!("CARGO_BIN_EXE_notes-axum"), 1);
    let gate = Gate::before(&site.processes[0].address);
    let browser = Browser::start(&dir(&site.cluster));
    site.pause();
    let home = gate.url("/");
    browser.open(&home);
    let one = browser.tab();
    browser.submit("first note");
    wait_for(&browser, "first note");
    keeps_its_cookie_to_itself(&browser);

    let two = browser.new_tab();
    browser.switch_to(&two);
    browser.open(&home);
    assert!(browser.page().contains("first note"), "{}", browser.page());
    let others = Client::default().get(&home).body;
    assert!(!others.contains("first note"), "by the replica: {others}");

    // a read is answered before the other tab writes, and the answer comes after that one's
    browser.run("window.held = fetch('/?held'); return 0");
    gate.wait_for_held(1);
    browser.switch_to(&one);
    browser.submit("second note");
    wait_for(&browser, "second note");
    gate.release();
    browser.switch_to(&two);
    let read = browser.run("return window.held.then(answer => answer.text())");
    assert!(
        !read.to_string().contains("second note"),
        "it was first: {read}"
    );
    browser.open(&home);
    let page = browser.page();
    assert!(
        page.contains("first note") && page.contains("second note"),
        "{page}"
    );
}

/// A form is sent, and the page it leads to is there a moment later.
fn wait_for(browser: &Browser, note: &str) {
    wait_until("the page shows the note", SOON, || {
        browser.page().contains(note)
    });
}

fn keeps_its_cookie_to_itself(browser: &Browser) {
    let seen = browser.run("return document.cookie");
    assert_eq!(seen, "", "scripts see no token");
    let cookies = browser.cookies();
    let [cookie] = &cookies[..] else {
        panic!("one cookie, not {cookies:?}");
    };
    let name = cookie["name"].as_str().expect("a name");
    assert!(name.starts_with("routed_"), "{cookie}");
    assert_eq!(cookie["httpOnly"], true);
    assert_eq!(cookie["sameSite"], "Lax");
    assert_eq!(cookie["secure"], false, "the example has no TLS");
    assert_eq!(cookie["path"], "/");
    assert!(cookie["expiry"].is_u64(), "it ends by itself: {cookie}");
}
