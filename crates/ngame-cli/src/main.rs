//! The `ngame` command.

fn main() {}
