#[path = "../../overhead/statements.rs"]
mod statements;
mod work;
use work::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let work = Work::ALL.into_iter().find(|w| w.name() == args[1]).unwrap();
    let on = if args[2] == "plain" {
        On::Plain
    } else {
        On::Routed
    };
    work.run(on, args[3].parse().unwrap());
}
