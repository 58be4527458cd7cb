"""The tests of Hostler; `CONTRIBUTING.md` says which kind goes where."""
