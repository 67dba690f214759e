"""Everything of torch that is private or differs between releases (2.11 to 2.15).

No other module imports ``torch._dynamo``, ``torch._inductor``, ``torch._ops`` or ``torch.fx.experimental``, nor reads a
name of torch that starts with an underscore. Exceptions: ``torch.utils._pytree``, and `ace_studio.engine.subgraphs`,
which also runs inside artifacts, without this package.

- `exporting`: torch.export and its settings. `plain_ops`: calls that are traced in a form of their own.
- `sizes`, `symbols`, `short_forms`: symbolic sizes: reading them, and keeping them short while a graph is traced.
- `operators`: arguments, tags, forms and kernels of operators.
- `dynamo`: the compiler's front end. `inductor`, `kernels`: its back end.
- `onnx`: the tables of torch's ONNX exporter. `stored`: captured graphs as JSON.
"""
