"""Running a model that was captured in subgraphs: a copy of `run_pieces` goes with every saved artifact."""
