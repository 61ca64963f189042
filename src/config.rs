//! Settings, key map and theme files, read once at the start.
