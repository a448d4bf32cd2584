"""Where people look and act. Owns no table and can be left out of INSTALLED_APPS."""
