//! Reference server and client: correct by the letter.
