"""Clients of the providers' own APIs, through their official packages where there is one."""
