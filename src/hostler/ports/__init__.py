"""What the shell must offer to the engine, as Protocols without a line of I/O."""
