"""A fake provider and mail server that count for themselves: standard library only, nothing of ours."""
