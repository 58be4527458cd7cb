"""Tests of the core: step tests, properties, and the scenarios of the specifications."""
