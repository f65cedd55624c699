//! Tables in Markdown.

use std::fmt;

/// A table whose columns are as wide as what is in them; all but the first are set to the right.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new<S: ToString>(head: impl IntoIterator<Item = S>) -> Self {
        let mut table = Table { rows: Vec::new() };
        table.row(head);
        table
    }

    pub fn row<S: ToString>(&mut self, cells: impl IntoIterator<Item = S>) {
        let cells = cells.into_iter().map(|cell| cell.to_string());
        self.rows.push(cells.collect());
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
            .max(3)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, row) in self.rows.iter().enumerate() {
            for (column, cell) in row.iter().enumerate() {
                let width = self.width(column);
                match column {
                    0 => write!(f, "| {cell:width$} ")?,
                    _ => write!(f, "| {cell:>width$} ")?,
                }
            }
            writeln!(f, "|")?;
            if i == 0 {
                for column in 0..row.len() {
                    let line = "-".repeat(self.width(column));
                    match column {
                        0 => write!(f, "|-{line}-")?,
                        _ => write!(f, "|-{line}:")?,
                    }
                }
                writeln!(f, "|")?;
            }
        }
        Ok(())
    }
}
