"""Everything of torch that is private or differs between releases (2.11 to 2.14).

No other module may import ``torch._dynamo``, ``torch._inductor`` or ``torch.fx.experimental``, nor read a name of torch
that starts with an underscore.
"""
