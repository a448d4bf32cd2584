"""One file per list: what it may be asked for, and how its rows look."""
