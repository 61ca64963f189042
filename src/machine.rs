//! What a correct participant does: coordinator, deadlines, bounded queue, retry class, tasks. Pure: time comes in as whole milliseconds, nothing is read from a clock, a socket or a file.
