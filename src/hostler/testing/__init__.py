"""The test kit that Hostler ships: builders, fakes, and a conformance suite for every port."""
