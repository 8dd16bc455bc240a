"""Classical controllers, usable wherever a policy is."""
