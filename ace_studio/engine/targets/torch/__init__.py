"""The targets that stay in torch: eager, Inductor, AOTInductor packages, and torchao on CUDA."""
