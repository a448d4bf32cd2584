"""Layer 1: an event is taken in once, however often it is delivered."""
