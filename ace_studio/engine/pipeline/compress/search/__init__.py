"""The search for a goal: which precision every op gets, found by building and measuring few candidates.

run          the strategy: which variants and targets are evaluated, in what order
variants     low precisions on a target
evaluation   builds, measures and keeps the candidate of one plan
prices       what each precision costs and gains at each group of ops, from measured builds
mixture      the integer program over those prices
mixing       which of its mixtures are built
mixer        joins them for one target: mixtures as plans, with the reasons
"""
