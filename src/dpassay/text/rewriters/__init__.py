"""Published text systems and their corrected variants, one file per mechanism."""
