"""`hostler demo`: real video kept on air through a killed node and a killed server."""
