//! The recording: its format, writing, reading, following a growing file, and the library of recordings and running taps.
