//! Findings and timelines as text and JSON, for people and for scripts.
