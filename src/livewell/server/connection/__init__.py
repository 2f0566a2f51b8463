"""The socket before anyone is known: connections by address, deadlines, the HTTP protocol, and what was refused."""
