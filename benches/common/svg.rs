//! Pictures that are read on light and on dark pages.

use std::fmt::{Display, Write};
use std::path::Path;

const STYLE: &str = r##"
    .paper { fill: #ffffff; stroke: #d0d7de }
    text { font: 13px system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif; fill: #1f2328 }
    .title { font-size: 15px; font-weight: 600 }
    .note { font-size: 12px; fill: #59636e }
    .strong { font-weight: 600 }
    .middle { text-anchor: middle }
    .end { text-anchor: end }
    .grid { stroke: #d8dee4; stroke-width: 1 }
    .axis { stroke: #8c959f; stroke-width: 1.5 }
    .plain { fill: #8c959f }
    .ours { fill: #1a7f37 }
    .line { stroke: #1a7f37; stroke-width: 2.5; fill: none }
    .ideal { stroke: #8c959f; stroke-width: 2; stroke-dasharray: 6 5; fill: none }
    @media (prefers-color-scheme: dark) {
      .paper { fill: #0d1117; stroke: #3d444d }
      text { fill: #e6edf3 }
      .note { fill: #9198a1 }
      .grid { stroke: #2a313c }
      .axis { stroke: #656c76 }
      .plain { fill: #656c76 }
      .ours { fill: #3fb950 }
      .line { stroke: #3fb950 }
      .ideal { stroke: #9198a1 }
    }
  "##;

/// A picture that is being drawn; places are in pixels from the upper left corner.
pub struct Svg {
    text: String,
}

impl Svg {
    /// An empty picture with a frame, a title, and a description for those who cannot see it.
    pub fn new(width: u32, height: u32, title: &str, description: &str) -> Self {
        let text = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="title description">
  <title id="title">{title}</title>
  <desc id="description">{description}</desc>
  <style>{STYLE}</style>
  <rect class="paper" x=".5" y=".5" width="{}" height="{}" rx="8"/>
"#,
            width - 1,
            height - 1
        );
        let mut svg = Svg { text };
        svg.text("title", (20.0, 30.0), title);
        svg
    }

    pub fn text(&mut self, class: &str, (x, y): (f64, f64), text: impl Display) {
        self.add(format_args!(
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}">{text}</text>"#
        ));
    }

    /// A text that runs upwards, around its middle.
    pub fn upright(&mut self, class: &str, (x, y): (f64, f64), text: impl Display) {
        self.add(format_args!(
            r#"<text class="{class}" transform="translate({x:.1} {y:.1}) rotate(-90)">{text}</text>"#
        ));
    }

    pub fn line(&mut self, class: &str, points: &[(f64, f64)]) {
        let mut path = String::new();
        for (x, y) in points {
            let step = if path.is_empty() { 'M' } else { 'L' };
            write!(path, "{step}{x:.1} {y:.1}").expect("a String takes everything");
        }
        self.add(format_args!(r#"<path class="{class}" d="{path}"/>"#));
    }

    pub fn dot(&mut self, class: &str, (x, y): (f64, f64)) {
        self.add(format_args!(
            r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="4.5"/>"#
        ));
    }

    pub fn save(mut self, path: &Path) {
        self.text.push_str("</svg>\n");
        std::fs::write(path, self.text).expect("docs/ can be written");
        println!("drawn: {}", path.display());
    }

    fn add(&mut self, element: impl Display) {
        writeln!(self.text, "  {element}").expect("a String takes everything");
    }
}
