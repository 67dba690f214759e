"""Facts: plain typed records that may cross the process border. No torch, no Qt."""
