"""Nowcasts as laws: how well the spread is known of what neural processes make of winds."""
