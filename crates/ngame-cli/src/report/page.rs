//! The page: one self-contained HTML document.

use std::fmt::Write;

use super::sections;
use super::told::Told;
use crate::chart::escaped;

const STYLE: &str = include_str!("page.css");

/// The whole page about all that was told.
pub(super) fn page(all: &[Told]) -> String {
    let names: Vec<&str> = all.iter().map(|told| told.name.as_str()).collect();
    let title = escaped(&names.join(", "));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title} – ngame report</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n\
         <p class=\"brand\">ngame report</p>\n<h1>{title}</h1>\n"
    );
    if all.len() > 1 {
        page.push_str("<nav aria-label=\"Models and runs\">");
        for (number, name) in names.iter().enumerate() {
            let _ = write!(page, "<a href=\"#m{number}\">{}</a>", escaped(name));
        }
        page.push_str("</nav>\n");
    }
    page.push_str("</header>\n<main>\n");
    if all.len() > 1 {
        page.push_str(&sections::comparison(all));
    }
    for (number, told) in all.iter().enumerate() {
        let _ = writeln!(page, "<article id=\"m{number}\">");
        if all.len() > 1 {
            let _ = writeln!(page, "<h2>{}</h2>", escaped(&told.name));
        }
        for section in sections::ALL {
            page.push_str(&section(told));
        }
        page.push_str("</article>\n");
    }
    let _ = write!(
        page,
        "</main>\n<footer><p>Written by ngame {}. Shares are in percent. P@k: how many of the first k labels \
         are right; PSP@k: the same with rare labels weighted up (propensity-scored); R@100: how many of the \
         right labels are among the first 100. Intervals hold 95 % of what other test points would \
         give.</p></footer>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION"),
    );
    page
}
