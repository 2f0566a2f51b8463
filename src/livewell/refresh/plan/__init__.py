"""What freshness is possible under the limits, when the budget ends, and what to slow down."""
