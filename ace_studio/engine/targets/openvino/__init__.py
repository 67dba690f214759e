"""OpenVINO: the target, compression by NNCF, and its profile mapped back to ops."""
