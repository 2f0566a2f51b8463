"""What is watched and stale becomes jobs, as far as the limits allow."""
