"""One module per schema version, numbered without gaps."""
