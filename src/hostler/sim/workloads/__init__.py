"""What people do with a fleet: submit, lease, operate, configure. None of them checks anything."""
