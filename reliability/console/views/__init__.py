"""One file per noun; each view declares who may enter through ``access``."""
