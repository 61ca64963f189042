//! The man in the middle: stdio and HTTP. Forwards first, looks second, never re-serialises.
