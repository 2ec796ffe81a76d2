"""What a decider is shown of an approval, at every door where people decide."""
