"""Any target on a partial capture: each subgraph is lowered by itself, Python runs between them."""
