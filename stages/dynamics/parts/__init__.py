"""Parts that the family's networks share: gates, attention with relative biases, the recurrent
stack."""
