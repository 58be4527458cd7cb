"""Providers: one folder each, sharing nothing, found by entry point and loaded when used.

`hostler.providers.registry` finds them. What each must do is `hostler.ports.provider`'s to say and
`hostler.testing.provider_conformance`'s to check.
"""
