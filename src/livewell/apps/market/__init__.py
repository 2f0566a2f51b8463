"""Market data: the types of FMP, and a simulator of FMP to try them on."""
