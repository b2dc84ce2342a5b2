"""Order models judged (thesis 4.3, D.1-D.2).

Samples by the rules of their kind, learned densities by the exact ones, passes by their lower bounds.
Shapes: N sequences, T tokens, V of the vocabulary.
"""
