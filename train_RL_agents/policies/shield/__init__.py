"""The shield: a guard around a policy, which looks ahead on the vessel's model."""
