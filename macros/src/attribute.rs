//! Which of the two attributes is at work.

use std::fmt;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attribute {
    Main,
    Test,
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Attribute::Main => "#[runtime::main]",
            Attribute::Test => "#[runtime::test]",
        })
    }
}
