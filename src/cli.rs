//! Arguments → `app` → exit code. The only room that prints.
