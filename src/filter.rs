//! One language to pick events and calls: parse, print, evaluate.
