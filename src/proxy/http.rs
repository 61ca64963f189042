//! The tap on Streamable HTTP and on the older HTTP+SSE.
