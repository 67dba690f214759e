"""The search for a goal: which ops stay at a high precision, found by building and measuring few candidates.

run          the strategy: which variants and precisions are evaluated, in what order
evaluation   builds, measures and keeps the candidate of one plan
bisection    how many ops to keep high next
ranking      ops ordered by sensitivity
variants     low precisions on a target, each with its ranking
steps        what was evaluated, in the result and on disk
"""
