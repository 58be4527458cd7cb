"""Laws of the house that no linter knows, each failing with the reason why it is there."""
